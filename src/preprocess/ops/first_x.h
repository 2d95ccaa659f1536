// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// FirstX: the first min(x, length) ids of a bag, with their weights. Parameter: x.
class FirstX final : public BagOp {
 public:
  explicit FirstX(int64_t x) : formula_{x} {}
  int64_t length(int64_t before) const override { return formula_.length(before); }
  Bag plain(const Bag& bag) const override;
  bool keeps_single() const override { return true; }
  void run(const BagView& in, const int64_t* out_offsets, uint64_t* out,
           float* weights) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::first_x, .first_x = formula_};
  }

 private:
  const formulas::FirstX formula_;
};

}  // namespace recmill::preprocess
