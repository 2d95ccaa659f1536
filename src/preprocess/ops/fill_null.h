// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// FillNull: y = value where x is NaN (missing), else x. Parameter: value.
class FillNull final : public DenseOp {
 public:
  explicit FillNull(float value) : value_(value) {}
  float plain(float x) const override { return x != x ? value_ : x; }
  void run(std::span<const float> in, std::span<float> out) const override;

 private:
  const float value_;
};

}  // namespace recmill::preprocess
