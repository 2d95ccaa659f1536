// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/orc_reader.h"

#include <arrow/util/config.h>
#ifdef ARROW_ORC
#include <arrow/adapters/orc/adapter.h>
#include <arrow/record_batch.h>

#include "reader/arrow/arrow_files.h"
#include "reader/columnar/array_cursor.h"
#endif

namespace recmill::reader {
#ifdef ARROW_ORC
namespace {

using arrow::adapters::orc::ORCFileReader;

class OrcFile final : public RowGroupFile {
 public:
  Result<std::unique_ptr<FieldCursor>> open(int64_t group, const BoundColumn& column, CellKind kind,
                                            bool) override {
    const std::string where = place_of(column, kind);
    std::unique_ptr<FieldCursor> cursor;
    const Status opened = without_exceptions(where, [&]() -> Status {
      RECMILL_ASSIGN_FROM_ARROW(auto reader,
                                ORCFileReader::Open(input_, arrow::system_memory_pool()), where);
      RECMILL_RETURN_IF_ARROW_ERROR(reader->Seek(first_rows_[static_cast<size_t>(group)]), where);
      RECMILL_ASSIGN_FROM_ARROW(
          auto batches, reader->NextStripeReader(kArrayRows, {column.place_of(kind).field}), where);
      cursor =
          std::make_unique<ArrayCursor>(column, kind, where, arrays_of(std::move(batches), where));
      return {};
    });
    RECMILL_RETURN_IF_ERROR(opened);
    return cursor;
  }

 private:
  Status read_footer(std::shared_ptr<arrow::io::RandomAccessFile> input) override {
    input_ = std::move(input);
    RECMILL_ASSIGN_FROM_ARROW(auto reader, ORCFileReader::Open(input_, arrow::system_memory_pool()),
                              path());
    RECMILL_ASSIGN_FROM_ARROW(fields_, reader->ReadSchema(), path());
    int64_t all = 0;
    for (int64_t stripe = 0; stripe < reader->NumberOfStripes(); ++stripe) {
      const int64_t rows = reader->GetStripeInformation(stripe).num_rows;
      if (rows < 0 || rows > reader->NumberOfRows() - all) break;  // and no sum overflows
      first_rows_.push_back(all);
      row_groups_.push_back(rows);
      all += rows;
    }
    if (all == reader->NumberOfRows() && std::ssize(row_groups_) == reader->NumberOfStripes()) {
      return {};
    }
    return Status::Failed(path() +
                          ": its footer is damaged: " + std::to_string(reader->NumberOfRows()) +
                          " rows, but others in its stripes");
  }

  std::shared_ptr<arrow::io::RandomAccessFile> input_;
  std::vector<int64_t> first_rows_;  // [stripes]
};

}  // namespace
#endif

Result<std::unique_ptr<RowGroupFile>> open_orc([[maybe_unused]] Files& files,
                                               const std::string& path) {
#ifdef ARROW_ORC
  return RowGroupFile::open<OrcFile>(files, path);
#else
  return Status::BadRequest(path + ": the Arrow of this program was built without ORC");
#endif
}

}  // namespace recmill::reader
