// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// FillNull for ids: an empty bag (a missing cell) becomes the bag {id} of weight 1; others stay.
/// Parameter: id.
class FillMissingId final : public BagOp {
 public:
  explicit FillMissingId(uint64_t id) : formula_{id} {}
  int64_t length(int64_t before) const override { return formula_.length(before); }
  Bag plain(const Bag& bag) const override {
    return bag.ids.empty() ? Bag{{formula_.id}, {1.0f}} : bag;
  }
  bool keeps_single() const override { return true; }
  void run(const BagView& in, const int64_t* out_offsets, uint64_t* out,
           float* weights) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::fill_missing_id, .fill_missing_id = formula_};
  }

 private:
  const formulas::FillMissingId formula_;
};

}  // namespace recmill::preprocess
