// SPDX-License-Identifier: Apache-2.0
// Arrow arrays as the values of a batch.
#pragma once

#include <arrow/array.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "batch/column_batch.h"
#include "reader/columnar_schema.h"

namespace recmill::reader {

/// The rows of one column so far; which member is used is up to the kind of its cells.
struct ColumnCells {
  std::vector<float> numbers;
  IdColumn ids;  // kinds id and weights (weights alone)
  std::vector<uint64_t> groups;
  std::vector<int64_t> times;

  void clear();
  int64_t rows(CellKind kind) const;
};

/// Appends the cells of `array`. A null, and a cell that ColumnSpec::missing lists, is a missing
/// value: NaN, an empty bag, or an error where a row must have a value (label, sample_weight, time,
/// group). Integers are ids as they are (negative ones by two's complement); text is read as
/// ColumnSpec::id_text says. Timestamps and dates become unix seconds. Errors name the cell's place
/// behind `where`; `first_row` is the number of the array's first row.
Status append_cells(const arrow::Array& array, const BoundColumn& column, CellKind kind,
                    const std::string& where, int64_t first_row, ColumnCells& cells);

}  // namespace recmill::reader
