// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "schema/column_range.h"

namespace recmill::placement {

/// Piece k of a table's columns in `pieces`, cut as table::ColumnSplit does.
inline ColumnRange column_piece(int64_t dim, int64_t pieces, int64_t k) {
  const int64_t groups = (dim + 15) / 16;
  const int64_t begin = k * groups / pieces * 16;
  return {begin, std::min((k + 1) * groups / pieces * 16, dim) - begin};
}

}  // namespace recmill::placement
