// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Clamp: y = low where x < low, high where x > high, else x (NaN stays). Parameters: low, high.
class Clamp final : public DenseOp {
 public:
  Clamp(float low, float high) : low_(low), high_(high) {}
  float plain(float x) const override { return x < low_ ? low_ : x > high_ ? high_ : x; }
  void run(std::span<const float> in, std::span<float> out) const override;

 private:
  const float low_, high_;
};

}  // namespace recmill::preprocess
