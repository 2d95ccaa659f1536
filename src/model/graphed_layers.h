// SPDX-License-Identifier: Apache-2.0
// Layers that are launched as graphs: two launches a step, instead of one for each of their
// kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/gpu_layers.h"

namespace recmill::model {

/// Layers that do as others do. A batch of a size and of addresses that were there some times
/// before is captured, forward and back; those after it launch what was captured. Layers that are
/// not repeatable are enqueued each time. Not on a stream of a GPU in synchronous mode.
class GraphedLayers final : public GpuLayers {
 public:
  explicit GraphedLayers(std::unique_ptr<GpuLayers> layers) : layers_(std::move(layers)) {}

  const Model& model() const override { return layers_->model(); }
  const EmbeddingLayout& layout() const override { return layers_->layout(); }
  int64_t totals_size() const override { return layers_->totals_size(); }
  bool is_repeatable(bool training) const override { return layers_->is_repeatable(training); }
  int64_t memory_version() const override { return layers_->memory_version(); }

  Status forward(const GpuLayersInput& input, float* logits, float* totals,
                 GpuStream& stream) override;
  Status backward(const float* logit_gradient, const GpuLayersGradient& gradient,
                  GpuStream& stream) override;

  /// Of batches that were launched as graphs.
  int64_t launched() const { return launched_; }

 private:
  /// What a graph depends on, but for what is in memory.
  struct Place {
    int64_t samples = 0;
    bool training = false;
    const float *parameters = nullptr, *dense = nullptr, *pooled = nullptr;
    float *logits = nullptr, *totals = nullptr;
    bool operator==(const Place&) const = default;
  };
  struct BackwardPlace {
    const float* logit_gradient = nullptr;
    float *pooled = nullptr, *parameters = nullptr;
    bool operator==(const BackwardPlace&) const = default;
  };
  struct Captured {
    Place of;
    int64_t batches = 0;  // before it was captured
    GpuGraph forward, backward;
    bool has_forward = false, has_backward = false;
    BackwardPlace back;
  };
  Captured& captured(const Place& of);
  Status again(const float* logit_gradient, const GpuLayersGradient& gradient, GpuStream& stream);

  const std::unique_ptr<GpuLayers> layers_;
  int64_t memory_version_ = 0;
  std::vector<std::unique_ptr<Captured>> captured_;  // the last one was used last
  // Of the last forward().
  Captured* current_ = nullptr;  // null: no graph
  GpuLayersInput input_;
  int64_t launched_ = 0;
};

}  // namespace recmill::model
