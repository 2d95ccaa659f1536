// SPDX-License-Identifier: Apache-2.0
// Reader over files of row groups; Parquet and Arrow IPC plug in as RowGroupFile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/pool.h"
#include "reader/arrow_cells.h"
#include "reader/columnar_schema.h"
#include "reader/reader.h"
#include "reader/row_group_order.h"

namespace recmill::reader {

/// Reads one field of one row group, front to back.
class FieldCursor {
 public:
  virtual ~FieldCursor() = default;
  /// Replaces `cells` by the next `rows` rows, which are there by the footer; its memory is reused.
  /// Errors name file and column.
  virtual Status read(int64_t rows, ColumnCells& cells) = 0;
  /// Passes over `rows` rows.
  virtual Status skip(int64_t rows) = 0;
};

/// An open file. All calls but the constructor are safe from several threads.
class RowGroupFile {
 public:
  virtual ~RowGroupFile() = default;
  virtual const std::string& path() const = 0;
  virtual const ColumnarSchema& columns() const = 0;
  virtual const std::vector<int64_t>& row_groups() const = 0;  // rows of each, by the footer
  /// `kind` is column.kind, or `weights` for the weights of a bag. `sliced`: the row group is read
  /// in slices, so it must not be held whole.
  virtual Result<std::unique_ptr<FieldCursor>> open(int64_t group, const BoundColumn& column,
                                                    CellKind kind, bool sliced) = 0;
};

struct ColumnarOptions {
  ShuffleKind shuffle = ShuffleKind::none;
  int64_t window = 65536;  // rows of a slice at most
  uint64_t seed = 0;
  int64_t prefetch = 2;  // slices that are decoded ahead
  int64_t rows = 0;      // the first rows of the data only; 0: all
};

/// A reader of `files`, in this order, which must have the same columns. A thread decodes slices
/// ahead of the position on `pool`, column by column; memory is prefetch + 1 slices.
Result<std::unique_ptr<Reader>> read_row_groups(const ColumnarOptions& options,
                                                std::vector<std::unique_ptr<RowGroupFile>> files,
                                                Pool& pool);

}  // namespace recmill::reader
