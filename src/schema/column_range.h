// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace recmill {

/// Columns [first, first + count) of rows: elements of a table's weights, and of state by element.
struct ColumnRange {
  int64_t first = 0;
  int64_t count = 0;

  int64_t end() const { return first + count; }
  bool contains(const ColumnRange& other) const {
    return other.count == 0 || (first <= other.first && other.end() <= end());
  }
  /// What both have; of no columns where that is nothing.
  ColumnRange common(const ColumnRange& other) const {
    const int64_t begin = std::max(first, other.first);
    return {begin, std::max<int64_t>(std::min(end(), other.end()) - begin, 0)};
  }
  bool operator==(const ColumnRange&) const = default;
};

}  // namespace recmill
