// SPDX-License-Identifier: Apache-2.0
#include "reader/writers/convert.h"

namespace recmill::reader {

Result<int64_t> convert(Reader& from, const WriterOptions& options, const std::string& path,
                        Files& files, const ConvertProgress& progress) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, from.rows());
  RECMILL_ASSIGN_OR_RETURN(auto writer, open_writer(options, path, from.schema(), files));
  constexpr int64_t kRowsAtOnce = 8192;
  ColumnBatch batch;
  for (int64_t done = 0; done < rows; done += batch.samples) {
    RECMILL_RETURN_IF_ERROR(from.read(/*epoch=*/0, done, kRowsAtOnce, batch));
    RECMILL_CHECK(batch.samples > 0, path);
    RECMILL_RETURN_IF_ERROR(writer->write(batch));
    if (progress && !progress(done + batch.samples, rows)) {
      return Status::Failed(path + ": stopped after " + std::to_string(done + batch.samples) +
                            " rows; nothing is kept");
    }
  }
  RECMILL_RETURN_IF_ERROR(writer->close());
  return rows;
}

}  // namespace recmill::reader
