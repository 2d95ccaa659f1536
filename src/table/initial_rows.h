// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "kernels/row_storage.h"
#include "schema/column_range.h"
#include "schema/table_spec.h"
#include "table/optimizers/row_state.h"
#include "table/row_record.h"

namespace recmill::table {

/// The rule that makes the initial rows of a table, each by itself, from (seed, name, row). Weights
/// are uniform in [-scale, scale), scale being spec.initial_scale or, where that is 0,
/// 1 / sqrt(rows), and rounded to nearest for 16-bit rows. State has its first values.
class InitialRows {
 public:
  InitialRows(const TableSpec& spec, uint64_t seed) : InitialRows(spec, seed, {0, spec.dim}) {}
  /// Of `columns` of each row, whose first one is a multiple of 4.
  InitialRows(const TableSpec& spec, uint64_t seed, ColumnRange columns);

  float scale() const { return scale_; }

  /// Into a slot of `rows`, which have the shape of the spec's records.
  void make(int64_t row, const kernels::RowStorage& rows, int64_t slot) const;
  /// `record` [RowRecord::bytes()] begins at a multiple of 4.
  void make(int64_t row, std::byte* record) const;

 private:
  const RowRecord record_;
  const RowState state_;
  const Random random_;
  const int64_t first_column_;
  const float scale_;
};

}  // namespace recmill::table
