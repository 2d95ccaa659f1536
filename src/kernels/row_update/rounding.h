// SPDX-License-Identifier: Apache-2.0
// Stochastic rounding of float32 weights to 16-bit rows: up or down with the probability of the
// distance, so that updates smaller than half a step are not lost. A value that the row's precision
// holds exactly stays. The random number is a function of (table, iteration, row, element).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/bfloat16.h"

namespace recmill::kernels {

/// `word` is uniform. Overflow goes to infinity; a NaN stays a NaN.
constexpr BFloat16 round_stochastically_to_bfloat16(float value, uint32_t word) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7F800000) == 0x7F800000) return to_bfloat16(value);
  return {static_cast<uint16_t>((bits + (word >> 16)) >> 16)};
}

/// `word` is uniform. Magnitudes that round to 65536 become infinity; a NaN stays a NaN.
inline Float16 round_stochastically_to_float16(float value, uint32_t word) {
  const float magnitude = std::fabs(value);
  if (!(magnitude < 65536.0f)) return to_float16(value);
  // The step between halves around `magnitude`: 2^(exponent - 10), subnormals 2^-24.
  const int exponent = magnitude < 0x1p-14f ? -14 : std::ilogb(magnitude);
  const float steps = std::ldexp(magnitude, 10 - exponent);  // exact, below 2048
  const float down = std::floor(steps);
  const float unit = static_cast<float>(word >> 8) * 0x1p-24f;
  const float rounded = std::ldexp(steps - down > unit ? down + 1 : down, exponent - 10);
  return to_float16(std::copysign(rounded, value));
}

}  // namespace recmill::kernels
