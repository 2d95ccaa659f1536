// SPDX-License-Identifier: Apache-2.0
// Arrow arrays as the values of a batch.
#pragma once

#include <arrow/array.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "batch/column_batch.h"
#include "reader/bad_row.h"
#include "reader/columnar/columnar_schema.h"

namespace recmill::reader {

/// The rows of one column so far; which member is used is up to the kind of its cells.
struct ColumnCells {
  std::vector<float> numbers;
  IdColumn ids;  // kinds id and weights (weights alone)
  std::vector<uint64_t> groups;
  std::vector<int64_t> times;
  /// Of the ids of a bag with weights: the items of each row, and whether each of them is an id.
  std::vector<int64_t> items;
  std::vector<uint8_t> has_id;
  /// Rows whose cell the role does not allow; they have some value above.
  std::vector<BadRow> bad;
  size_t most_bad = 1;  // the first so many of a read() are kept

  void clear();
  void note_bad(int64_t row, Status why) {
    if (bad.size() < most_bad) bad.push_back({row, std::move(why)});
  }
  int64_t rows(CellKind kind) const;
};

/// Appends the cells of `array`, the field that `column` is bound to. A null, and a cell that
/// ColumnSpec::missing lists, is a missing value: NaN or an empty bag; such an item of a list is
/// left out. Whole numbers are ids as they are (negative ones by two's complement); text is read as
/// ColumnSpec::id_text says. Timestamps and dates become unix seconds. A row is bad that lacks a
/// value and must have one (label, sample_weight, time, group), has an infinite number, a label
/// outside [0, 1], a sample weight below 0, or what is no id. What is no fault of a row is an error
/// behind `where`.
Status append_cells(const arrow::Array& array, const BoundColumn& column, CellKind kind,
                    const std::string& where, ColumnCells& cells);

/// What a row lacks that must have a value.
Status no_value();
/// True for numbers that need not be there: NaN then.
inline bool may_be_missing(const BoundColumn& column) {
  return column.spec.role == ColumnRole::dense || column.spec.role == ColumnRole::ignore ||
         column.may_be_empty;
}

/// Makes labels of the numbers of rows [first, first + count) where the column is that of labels.
/// Notes those rows whose number is infinite, NaN (unless it may_be_missing()), no label, or a
/// sample weight below 0.
void check_numbers(int64_t first, int64_t count, const BoundColumn& column, ColumnCells& cells);

}  // namespace recmill::reader
