// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Log: y = ln(1 + max(x, 0)); NaN stays NaN, infinity infinity.
///
/// Computed in float32 by the steps below (formulas::Log), the same bits on every device: each
/// step is one IEEE operation, rounded to nearest, without contraction. The result is within
/// 1.5 units in the last place of the true value, over all floats.
///
///   z = x < 0 ? 0 : x;  u = z + 1
///   k = (bits(u) - bits(2/3)) >> 23, so that u / 2^k lies in [2/3, 4/3)
///   f = z 2^-k + (2^-k - 1)      where z < 2^24 (2^-k is exact, and so is the first product)
///   f = u / 2^k - 1              elsewhere (1 + z is z there, but for a last place)
///   y = k H + (f + ((f^3 Q(f) + k L) - f^2 / 2)),  H + L = ln 2, H of 16 bits
/// with Q of degree 7, the minimax fit of (ln(1 + f) - f + f^2 / 2) / f^3 on [-1/3, 1/3], whose
/// share of the error is below 5e-9 of y.
class Log final : public DenseOp {
 public:
  float plain(float x) const override { return formulas::Log()(x); }
  void run(std::span<const float> in, std::span<float> out) const override;
  KeptRange kept() const override { return formulas::Log().kept(); }
  std::optional<GpuOp> on_gpu() const override { return GpuOp{.kind = GpuOpKind::log, .log = {}}; }
};

}  // namespace recmill::preprocess
