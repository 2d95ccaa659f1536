// SPDX-License-Identifier: Apache-2.0
// A row apart from its table: as it travels between ranks, and is stored at a RowHome.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/row_storage.h"
#include "schema/column_range.h"
#include "schema/table_spec.h"
#include "table/optimizers/row_state.h"

namespace recmill::table {

/// Where the parts of a row are in its record, which is the same for every row of a table:
///
///   weights         dim elements as stored, 2 or 4 bytes each
///   element state   [columns][dim] float32
///   row state       one float32
///
/// State begins at a multiple of 4 bytes; bytes between parts are those of the table, which are 0.
/// A record is read in place from a multiple of 4 on.
class RowRecord {
 public:
  /// Of whole rows, or of `columns` of their elements.
  explicit RowRecord(const TableSpec& spec) : RowRecord(spec, spec.dim) {}
  RowRecord(const TableSpec& spec, int64_t columns);

  int64_t bytes() const { return bytes_; }
  /// Of the weights, which come first.
  int64_t weight_bytes() const;
  bool has_row_state() const { return row_state_ < bytes_; }
  /// How a table stores rows: without any, and without addresses. A record is what is stored there
  /// in a slot, and then the row state, which tables store apart.
  const kernels::RowStorage& storage() const { return storage_; }

  /// A record as the only row of a table, which is read and written in place.
  kernels::RowStorage in_place(std::byte* record) const;

  /// Copies the row in a slot of `rows`, which are of this shape, to `record` [bytes()] or back.
  void pack(const kernels::RowStorage& rows, int64_t slot, std::byte* record) const;
  void unpack(const std::byte* record, const kernels::RowStorage& rows, int64_t slot) const;
  /// The row in float32: weights [dim], and each column of RowState [its width].
  void read(const std::byte* record, std::span<float> weights,
            std::span<const std::span<float>> state) const;

  /// Weights [dim] in float32, of which a record may be cut off behind.
  void read_weights(const std::byte* record, std::span<float> weights) const;

  /// Bytes [first, first + count) of a record.
  struct Part {
    int64_t first = 0, count = 0;
  };
  /// Where some columns are, counted from the record's first one; `row_state`: that too, if any.
  std::vector<Part> parts(ColumnRange columns, bool row_state) const;

 private:
  kernels::RowStorage storage_;
  int64_t element_columns_ = 0;  // of the state
  int64_t row_state_ = 0;        // where it begins; bytes_ where there is none
  int64_t bytes_ = 0;
};

}  // namespace recmill::table
