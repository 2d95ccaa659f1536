// SPDX-License-Identifier: Apache-2.0
// A model's layers on a GPU, by LibTorch: a whole batch at once, forward and back. Sums are not in
// the order of slices, so that the bits are not the CPU's (docs/ARCHITECTURE.md, "The mathematical
// contract").
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/gpu/gpu.h"
#include "model/model.h"
#include "model/model_options.h"

namespace recmill::model {

/// Enqueues that values [count] of the GPU become their sums over all ranks.
using AddOverRanks = std::function<Status(float* values, int64_t count, GpuStream& stream)>;

/// This rank's samples of a batch in memory of the GPU, but for offsets and rows, which are the
/// host's and are read until forward() has happened.
struct GpuLayersInput {
  int64_t first_sample = 0;  // global position
  int64_t iteration = 0;
  int64_t samples = 0;
  bool training = false;
  const float* parameters = nullptr;  // [parameter count]
  const float* dense = nullptr;       // [samples][num_dense]
  const float* pooled = nullptr;      // [samples][layout().stride]
  struct Sequence {
    const float* rows = nullptr;       // [lookups][dim]
    const int64_t* offsets = nullptr;  // [samples + 1]
  };
  std::vector<Sequence> sequences = {};  // [unpooled features]
  std::vector<JaggedView> rows = {};     // [features], where the model reads_rows()
  AddOverRanks add_over_ranks = {};      // empty: there is one rank
};

/// Where backward() writes; of the GPU. Laid out as what forward() read.
struct GpuLayersGradient {
  float* pooled = nullptr;  // what is between features becomes 0
  std::vector<float*> sequences = {};
  float* parameters = nullptr;  // 0 for what is not trained
};

/// Used by one thread at a time. What is enqueued may fail later, as the stream.
class GpuLayers {
 public:
  virtual ~GpuLayers() = default;

  /// The model of the layers: its parameters, how they begin, and finish_iteration().
  virtual const Model& model() const = 0;
  /// Pooled features in feature order, each at a multiple of 16 bytes.
  virtual const EmbeddingLayout& layout() const = 0;
  /// Floats of all sums over the batch that forward() makes, phase after phase.
  virtual int64_t totals_size() const = 0;
  /// Whether what a batch enqueues depends on its size, on addresses and on what is there, and
  /// on nothing else, so that it may be captured and launched again (GraphedLayers).
  virtual bool is_repeatable(bool training) const = 0;
  /// Another number than before: memory that earlier batches used in between is no more.
  virtual int64_t memory_version() const = 0;

  /// Enqueues the layers: writes logits [samples], and totals [totals_size()], over all ranks'
  /// samples. Where there are totals and several ranks it is collective, and so is backward().
  virtual Status forward(const GpuLayersInput& input, float* logits, float* totals,
                         GpuStream& stream) = 0;
  /// Of the batch of the last forward(), which was training. `logit_gradient` [samples]: of the
  /// GPU, when the stream comes to it.
  virtual Status backward(const float* logit_gradient, const GpuLayersGradient& gradient,
                          GpuStream& stream) = 0;
};

/// The same model as make_model()'s: parameters have other offsets, no more. Fails as that.
Result<std::unique_ptr<Model>> make_model_of_gpu(const ModelOptions& options, const ModelSpec& spec,
                                                 uint64_t seed);

/// Opens LibTorch's half for GPUs: in a process that uses LibTorch on the CPU too, before that, as
/// it never looks for GPUs again. Fails, naming the library that is missing.
Status open_layers_on_cuda();

enum class LayersOn { cuda, emulated_gpu };

/// On that GPU. `model`: of make_model_of_gpu(), which outlives the layers. Fails where LibTorch
/// has no half for GPUs.
Result<std::unique_ptr<GpuLayers>> make_gpu_layers(LayersOn device, const Gpu& gpu,
                                                   const Model& model, const ModelSpec& spec);

}  // namespace recmill::model
