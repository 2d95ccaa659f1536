// SPDX-License-Identifier: Apache-2.0
// A file of row groups, of which any field of any group can be read alone: Parquet and Arrow IPC.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/type.h>

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "reader/arrow/arrow_cells.h"
#include "reader/columnar/columnar_schema.h"

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

/// An open file. open() is safe to call from several threads.
class RowGroupFile {
 public:
  virtual ~RowGroupFile() = default;
  /// Opens `path` as `File` (a class with read_footer()); errors name it.
  template <typename File>
  static Result<std::unique_ptr<RowGroupFile>> open(Files& files, const std::string& path);

  const std::string& path() const { return path_; }
  const arrow::Schema& fields() const { return *fields_; }
  const std::vector<int64_t>& row_groups() const { return row_groups_; }  // rows, by the footer
  /// `kind` is column.kind, or `weights` for the weights of a bag. `sliced`: the row group is read
  /// in slices, so it must not be held whole. `column` outlives the cursor.
  virtual Result<std::unique_ptr<FieldCursor>> open(int64_t group, const BoundColumn& column,
                                                    CellKind kind, bool sliced) = 0;

 protected:
  /// Sets fields_ and row_groups_ from `input`. May throw what Parquet throws.
  virtual Status read_footer(std::shared_ptr<arrow::io::RandomAccessFile> input) = 0;
  /// "FILE: column 'NAME'", for errors.
  std::string place_of(const BoundColumn& column, CellKind kind) const {
    return path_ + ": column '" + column.spec.name + "'" +
           (kind == CellKind::weights ? " (weights)" : "");
  }

  std::shared_ptr<arrow::Schema> fields_;
  std::vector<int64_t> row_groups_;

 private:
  static Status start(RowGroupFile& file, Files& files, const std::string& path);
  std::string path_;
};

template <typename File>
Result<std::unique_ptr<RowGroupFile>> RowGroupFile::open(Files& files, const std::string& path) {
  std::unique_ptr<RowGroupFile> file = std::make_unique<File>();
  RECMILL_RETURN_IF_ERROR(start(*file, files, path));
  return file;
}

}  // namespace recmill::reader
