// SPDX-License-Identifier: Apache-2.0
// Rows on their way out of tables or into them, in float32, whatever the tables store.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"
#include "schema/column_range.h"

namespace recmill::table {

/// Some rows of a table, or some columns of them, as after one iteration: weights in float32 (exact
/// for every precision), and the optimizer's state columns in the order of RowState. State by row
/// goes with column 0: beside other columns a block that is read has none of it.
struct RowBlock {
  int table = 0;
  int64_t first = 0;  // of rows that follow each other
  int64_t count = 0;
  std::span<const float> weights;                 // [count][columns]
  std::span<const std::span<const float>> state;  // per column: [count][columns], or [count]
  std::span<const int64_t> listed = {};  // [count] ascending, where there are gaps; else empty
  ColumnRange columns = {};              // none: all of them

  int64_t row(int64_t i) const { return listed.empty() ? first + i : listed[i]; }
  ColumnRange columns_of(int64_t dim) const {
    return columns.count == 0 ? ColumnRange{0, dim} : columns;
  }
};

/// Rows as they were when it was taken, whatever is updated meanwhile. May be read on another
/// thread than the one that updates, once; destroyed before, it is given up. What it was taken of
/// outlives it.
class RowSnapshot {
 public:
  virtual ~RowSnapshot() = default;
  /// Hands all rows to `sink`, in ascending order of (table, row): of a rank those that it owns, so
  /// that over all ranks every element comes exactly once. Ends with the first error of `sink`.
  virtual Status read(const std::function<Status(const RowBlock&)>& sink) = 0;

  /// Whether read_touched() leaves out the rows that nobody has changed since InitialRows made
  /// them.
  virtual bool knows_touched() const { return false; }
  /// In place of read().
  virtual Status read_touched(const std::function<Status(const RowBlock&)>& sink) {
    return read(sink);
  }
};

}  // namespace recmill::table
