// SPDX-License-Identifier: Apache-2.0
// Files of every format that the readers know, written from batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "batch/column_batch.h"
#include "schema/column_spec.h"

namespace recmill::reader {

struct WriterOptions {
  int64_t row_group_rows = 65536;  // parquet and arrow: rows in a row group (a record batch)
  // Of no key. Parquet and arrow: a field without a role with ColumnBatch::keys.numbers; empty:
  // none.
  std::string number_field = {};
};
template <typename Visitor>
void describe(Visitor& v, WriterOptions& o) {
  v("row_group_rows", o.row_group_rows, "rows in a row group of Parquet, a batch of Arrow IPC",
    between(1, 1 << 24));
}

/// Writes rows in the order in which they come. The file is there after close() and not before; a
/// writer that is destroyed without it, or whose call failed, leaves nothing.
class Writer {
 public:
  virtual ~Writer() = default;
  /// Appends the rows of `batch`, which has the columns of the schema given to open_writer().
  /// Errors name the file, the column and the row that the format cannot hold.
  virtual Status write(const ColumnBatch& batch) = 0;
  virtual Status close() = 0;
};

/// Opens `path` for a data set of `schema`. By name: .tsv is criteo_tsv, .csv csv, .parquet
/// parquet, .arrow and .feather arrow; .gz and .zst behind .tsv or .csv compress. A request that
/// the format cannot meet (criteo_tsv: anything but 13 dense columns and 26 id columns without
/// bags) is refused here.
Result<std::unique_ptr<Writer>> open_writer(const WriterOptions& options, const std::string& path,
                                            const DataSchema& schema, Files& files);

/// The columns that a csv file of `schema` has, in file order, as data.columns would name them. Ids
/// are hexadecimal, those of a bag split by '|', their weights behind ':'.
std::vector<ColumnSpec> written_columns(const DataSchema& schema);

}  // namespace recmill::reader
