// SPDX-License-Identifier: Apache-2.0
// Sixteen-bit floats as bits. Arithmetic is done in float32; these only convert.
#pragma once

#include <bit>
#include <cstdint>

namespace recmill {

struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

constexpr float to_float(BFloat16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}

/// Rounds to nearest, ties to even; a NaN stays a (quiet) NaN.
constexpr BFloat16 to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

}  // namespace recmill
