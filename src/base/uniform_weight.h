// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/random.h"

namespace recmill {

/// An initial weight of a row, uniform in [-scale, scale): scale times a multiple of 2^-23, which
/// is exact in float32.
constexpr float uniform_weight(uint32_t word, float scale) {
  return (Random::unit(word) * 2.0f - 1.0f) * scale;
}

}  // namespace recmill
