// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// FillNull for ids: an empty bag (a missing cell) becomes the bag {id} of weight 1; others stay.
/// Parameter: id.
class FillMissingId final : public BagOp {
 public:
  explicit FillMissingId(uint64_t id) : id_(id) {}
  int64_t length(int64_t before) const override { return std::max<int64_t>(before, 1); }
  Bag plain(const Bag& bag) const override { return bag.ids.empty() ? Bag{{id_}, {1.0f}} : bag; }
  bool keeps_single() const override { return true; }
  void run(const BagView& in, const int64_t* out_offsets, uint64_t* out,
           float* weights) const override;

 private:
  const uint64_t id_;
};

}  // namespace recmill::preprocess
