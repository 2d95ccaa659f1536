// SPDX-License-Identifier: Apache-2.0
// A row's columns in pieces of whole groups of 16, the lanes of its sum of squares: piece k of n is
// groups [k g / n, (k + 1) g / n) of the g that a row has, the last of which may be shorter.
#pragma once

#include <algorithm>
#include <cstdint>

#include "schema/column_range.h"

namespace recmill {

constexpr int64_t kColumnGroup = 16;

constexpr int64_t column_groups(int64_t dim) {
  return (dim + kColumnGroup - 1) / kColumnGroup;
}

/// Piece k of `pieces`, at most as many as groups.
inline ColumnRange column_piece(int64_t dim, int64_t pieces, int64_t k) {
  const int64_t groups = column_groups(dim);
  const int64_t begin = k * groups / pieces * kColumnGroup;
  return {begin, std::min((k + 1) * groups / pieces * kColumnGroup, dim) - begin};
}

}  // namespace recmill
