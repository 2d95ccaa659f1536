// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// FillNull: y = value where x is NaN (missing), else x. Parameter: value.
class FillNull final : public DenseOp {
 public:
  explicit FillNull(float value) : formula_{value} {}
  float plain(float x) const override { return formula_(x); }
  void run(std::span<const float> in, std::span<float> out) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::fill_null, .fill_null = formula_};
  }

 private:
  const formulas::FillNull formula_;
};

}  // namespace recmill::preprocess
