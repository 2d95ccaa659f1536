// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Log: y = ln(1 + max(x, 0)); NaN stays NaN, infinity infinity.
///
/// Computed in float32 by the steps of log_plus_one() below, the same bits on every device: each
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
  float plain(float x) const override;
  void run(std::span<const float> in, std::span<float> out) const override;
};

/// Constants of the definition, shared by every device.
namespace log_plus_one {
inline constexpr int32_t kTwoThirds = 0x3F2AAAAB;  // bits of 2/3, rounded up
inline constexpr float kLarge = 16777216.0f;       // 2^24
inline constexpr float kHigh = 0x1.62e4p-1f;
inline constexpr float kLow = 0x1.7f7d1cp-20f;
inline constexpr float kQ[8] = {0x1.55550ap-2f, -0x1.fffef8p-3f, 0x1.99ce98p-3f, -0x1.559cb0p-3f,
                                0x1.1eed4ap-3f, -0x1.f32dfep-4f, 0x1.1e0512p-3f, -0x1.07ca1ep-3f};
}  // namespace log_plus_one

}  // namespace recmill::preprocess
