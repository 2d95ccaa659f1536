// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// FirstX: the first min(x, length) ids of a bag, with their weights. Parameter: x.
class FirstX final : public BagOp {
 public:
  explicit FirstX(int64_t x) : x_(x) {}
  int64_t length(int64_t before) const override { return std::min(before, x_); }
  Bag plain(const Bag& bag) const override;
  bool keeps_single() const override { return true; }
  void run(const BagView& in, const int64_t* out_offsets, uint64_t* out,
           float* weights) const override;

 private:
  const int64_t x_;
};

}  // namespace recmill::preprocess
