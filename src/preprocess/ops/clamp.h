// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Clamp: y = low where x < low, high where x > high, else x (NaN stays). Parameters: low, high.
class Clamp final : public DenseOp {
 public:
  Clamp(float low, float high) : formula_{low, high} {}
  float plain(float x) const override { return formula_(x); }
  void run(std::span<const float> in, std::span<float> out) const override;
  KeptRange kept() const override { return formula_.kept(); }
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::clamp, .clamp = formula_};
  }

 private:
  const formulas::Clamp formula_;
};

}  // namespace recmill::preprocess
