// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Bucketize: the number of borders below x: row = |{b : b < x}|, in [0, borders]; NaN takes row 0.
/// Parameter: borders, ascending; compared in float32.
class Bucketize final : public BucketOp {
 public:
  explicit Bucketize(std::vector<float> borders) : borders_(std::move(borders)) {}
  uint64_t plain(float x) const override;
  void run(std::span<const float> in, std::span<uint64_t> out) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::bucketize, .bucketize = formula()};
  }

 private:
  formulas::Bucketize formula() const {
    return {borders_.data(), static_cast<int64_t>(borders_.size())};
  }
  const std::vector<float> borders_;
};

}  // namespace recmill::preprocess
