// SPDX-License-Identifier: Apache-2.0
// The mean of a gradient's squares, in pieces: what row-wise optimizers keep.
#pragma once

#include <array>
#include <cstdint>

namespace recmill::kernels {

/// Lane l of a row: the squares of elements l, l + 16, ..., folded from +0.
using SquareLanes = std::array<float, 16>;

/// Folds elements [0, count) on, the first of which is lane 0's.
inline void add_squares(const float* gradient, int64_t count, SquareLanes& lanes) {
  for (int64_t e = 0; e < count; ++e) lanes[e % 16] = lanes[e % 16] + gradient[e] * gradient[e];
}

/// Of a row of `dim` elements: the lanes pairwise 8, 4, 2, 1, and one division.
inline float mean_square(SquareLanes lanes, int64_t dim) {
  for (int width = 8; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lanes[l] = lanes[l] + lanes[l + width];
  }
  return lanes[0] / static_cast<float>(dim);
}

}  // namespace recmill::kernels
