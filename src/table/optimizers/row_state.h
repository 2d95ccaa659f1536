// SPDX-License-Identifier: Apache-2.0
// What a row optimizer keeps for each row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/table_spec.h"

namespace recmill::table {

/// One named column of state: `width` float32 for each row (dim, or 1), which start at `initial`.
struct StateColumn {
  std::string name;  // "sum_of_squares"
  int64_t width = 0;
  float initial = 0.0f;
  bool operator==(const StateColumn&) const = default;
};

/// In the order of checkpoints.
using RowState = std::vector<StateColumn>;

/// The state of a table's rows; none for a frozen table: columns by element (width dim), then at
/// most one by row (width 1).
RowState row_state(const TableSpec& spec);
/// The same of `columns` elements of each row.
RowState row_state(const TableSpec& spec, int64_t columns);

}  // namespace recmill::table
