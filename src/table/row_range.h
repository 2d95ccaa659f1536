// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace recmill::table {

/// Rows [begin, end) of a table.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

}  // namespace recmill::table
