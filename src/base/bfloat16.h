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

constexpr float to_float(Float16 value) {
  const uint32_t sign = uint32_t{value.bits & 0x8000u} << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1F;
  const uint32_t fraction = value.bits & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, exact
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

/// Rounds to nearest, ties to even; from 65520 up to infinity; a NaN stays a (quiet) NaN.
constexpr Float16 to_float16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return {static_cast<uint16_t>(sign | 0x7E00)};
  if (magnitude >= 0x477FF000) return {static_cast<uint16_t>(sign | 0x7C00)};
  if (magnitude < 0x38800000) {  // below 2^-14: adding 1/2 rounds to a multiple of 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000))};
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  return {static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xFFF + odd) >> 13))};
}

}  // namespace recmill
