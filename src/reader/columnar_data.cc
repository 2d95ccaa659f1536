// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar_data.h"

#include "reader/arrow_ipc_reader.h"
#include "reader/columnar_reader.h"
#include "reader/data_files.h"
#include "reader/parquet_reader.h"

namespace recmill::reader {

Result<std::unique_ptr<Reader>> open_columnar_data(const DataOptions& options, Subset subset,
                                                   uint64_t seed, Pool& pool, Files& files) {
  constexpr int64_t kMaxWindow = int64_t{1} << 24;
  if (options.shuffle.window <= 0 || options.shuffle.window > kMaxWindow) {
    return Status::BadRequest("data.shuffle.window: must lie in [1, 16777216]: " +
                              std::to_string(options.shuffle.window));
  }
  if (subset != Subset::all && options.split.by != SplitKind::file) {
    return Status::BadRequest("data.split.by = " + std::string(name_of(options.split.by)) + ": " +
                              std::string(name_of(options.format)) + " files are split by file");
  }
  RECMILL_ASSIGN_OR_RETURN(const auto paths, data_files(options, subset, files));
  std::vector<std::unique_ptr<RowGroupFile>> row_group_files;
  for (const std::string& path : paths) {
    RECMILL_ASSIGN_OR_RETURN(row_group_files.emplace_back(),
                             options.format == DataFormat::parquet
                                 ? open_parquet(files, path, options.columns)
                                 : open_arrow_ipc(files, path, options.columns));
  }
  ColumnarOptions columnar;
  if (subset == Subset::train) columnar.shuffle = options.shuffle.kind;
  columnar.window = options.shuffle.window;
  columnar.seed = seed;
  columnar.prefetch = options.prefetch;
  columnar.rows = options.rows;
  return read_row_groups(columnar, std::move(row_group_files), pool);
}

}  // namespace recmill::reader
