// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Standardize: y = (x - mean) (1 / deviation), in float64, rounded to float32; NaN stays.
/// Parameters: mean, deviation (above 0), which run/column_statistics.h finds of the training rows.
class Standardize final : public DenseOp {
 public:
  Standardize(double mean, double deviation) : formula_{mean, 1.0 / deviation} {}
  float plain(float x) const override { return formula_(x); }
  void run(std::span<const float> in, std::span<float> out) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::standardize, .standardize = formula_};
  }

 private:
  const formulas::Standardize formula_;
};

}  // namespace recmill::preprocess
