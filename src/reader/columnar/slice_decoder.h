// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/thread_pool.h"
#include "reader/columnar/row_group_file.h"
#include "reader/columnar/row_group_order.h"

namespace recmill::reader {

/// A file and what its fields are to the reader.
struct BoundFile {
  std::unique_ptr<RowGroupFile> file;
  ColumnarSchema columns;
};

/// Decodes slices of the row groups of some files with the same columns, one after another. Cheap
/// where the next slice follows the last one. For one thread; work is spread over the pool by
/// columns.
class SliceDecoder {
 public:
  /// Of each column and slice the first `most_bad` bad rows are kept.
  SliceDecoder(std::vector<BoundFile> files, size_t most_bad, ThreadPool& pool);

  const ColumnarSchema& schema() const { return files_[0].columns; }
  const std::vector<BoundFile>& files() const { return files_; }
  /// Rows of the row groups of all files, in order.
  std::vector<int64_t> group_rows() const;
  size_t file_of(const RowSlice& slice) const { return place_of(slice).file; }
  /// The number of the slice's first row in its file.
  int64_t number_of(const RowSlice& slice) const { return place_of(slice).first_row + slice.begin; }

  /// Decodes `columns` (indexes into schema().columns, ascending) of a slice. What is asked below
  /// is about the last slice decoded.
  Status decode(const RowSlice& slice, std::span<const size_t> columns);
  /// Ascending rows of the slice with a bad cell, each once, for its first such column; the errors
  /// name file, column and row of the file.
  std::vector<BadRow> bad_rows() const;
  /// What a split by hash looks at: the bytes of a cell, or of all decoded cells of the row where
  /// `column` is negative.
  uint64_t key_of(int column, size_t row) const;
  std::span<const int64_t> times(size_t column) const { return columns_[column].cells.times; }
  /// Replaces `batch` by `rows` of the slice in their order, or by all of it where `rows` is empty.
  /// Takes the cells: only once for a slice. All columns must be decoded.
  void hand_over(const std::vector<uint32_t>& rows, ColumnBatch& batch);

 private:
  struct GroupPlace {
    size_t file;
    int64_t group;      // of the file
    int64_t first_row;  // of the file
  };
  struct ColumnState {
    std::unique_ptr<FieldCursor> cells_at, weights_at;
    ColumnCells cells, weights;
  };

  const GroupPlace& place_of(const RowSlice& slice) const {
    return groups_[static_cast<size_t>(slice.group)];
  }
  const BoundColumn& bound(size_t column) const {
    return files_[place_of(slice_).file].columns.columns[column];
  }
  Status decode_column(size_t column, bool follows);
  Status decode_field(const BoundColumn& what, CellKind kind, bool follows,
                      std::unique_ptr<FieldCursor>& cursor, ColumnCells& cells);
  void hand_over_column(size_t column, const std::vector<uint32_t>& rows, ColumnBatch& batch);

  std::vector<BoundFile> files_;
  ThreadPool& pool_;
  std::vector<GroupPlace> groups_;  // of all files, in order
  std::vector<ColumnState> columns_;
  RowSlice slice_;               // the last one decoded
  std::vector<size_t> decoded_;  // columns whose cursors are behind slice_; none after an error
};

}  // namespace recmill::reader
