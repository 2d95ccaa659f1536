// SPDX-License-Identifier: Apache-2.0
#include "reader/parquet_reader.h"

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>

#include "reader/array_cursor.h"
#include "reader/arrow_files.h"
#include "reader/parquet_flat_cursor.h"

namespace recmill::reader {
namespace {

/// Rows of an Arrow array on the way to the cells: it stays in the second-level cache.
constexpr int64_t kArrayRows = 16384;

/// How a file is opened: `streaming` reads a column chunk through a small buffer instead of whole.
Result<std::unique_ptr<parquet::arrow::FileReader>> open_file(
    std::shared_ptr<arrow::io::RandomAccessFile> input, const std::string& path, bool streaming) {
  std::unique_ptr<parquet::arrow::FileReader> reader;
  const Status opened = without_exceptions(path, [&]() -> Status {
    // The system's allocator keeps what is freed; Arrow's own gave the pages back to the kernel,
    // which cost a tenth of the time of reading Criteo's columns.
    parquet::ReaderProperties properties(arrow::system_memory_pool());
    properties.set_page_checksum_verification(true);
    constexpr int64_t kStreamBytes = 128 << 10;
    if (streaming) {
      properties.enable_buffered_stream();
      properties.set_buffer_size(kStreamBytes);
    }
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_batch_size(kArrayRows);
    arrow_properties.set_pre_buffer(false);
    RECMILL_ASSIGN_FROM_ARROW(
        reader,
        parquet::arrow::FileReader::Make(
            arrow::system_memory_pool(),
            parquet::ParquetFileReader::Open(std::move(input), properties), arrow_properties),
        path);
    return {};
  });
  RECMILL_RETURN_IF_ERROR(opened);
  return reader;
}

int first_leaf(const parquet::arrow::SchemaField& field) {
  return field.children.empty() ? field.column_index : first_leaf(field.children[0]);
}

class ParquetFile final : public RowGroupFile {
 public:
  Result<std::unique_ptr<FieldCursor>> open(int64_t group, const BoundColumn& column, CellKind kind,
                                            bool sliced) override {
    const std::string where = place_of(column, kind);
    const int field = field_of(column, kind);
    std::unique_ptr<FieldCursor> cursor;
    const Status opened = without_exceptions(where, [&]() -> Status {
      const int leaf = first_leaf(whole_->manifest().schema_fields[static_cast<size_t>(field)]);
      const auto metadata = whole_->parquet_reader()->metadata()->RowGroup(static_cast<int>(group));
      // A chunk that is small as it lies in the file is held whole whatever is decoded of it.
      constexpr int64_t kSmallChunk = 1 << 20;
      const bool stream =
          sliced && metadata->ColumnChunk(leaf)->total_compressed_size() > kSmallChunk;
      parquet::arrow::FileReader& reader = stream ? *streaming_ : *whole_;
      cursor = open_flat_cursor(*reader.parquet_reader()->RowGroup(static_cast<int>(group)), leaf,
                                *fields_->field(field)->type(), column, kind, where);
      if (cursor != nullptr) return {};
      RECMILL_ASSIGN_FROM_ARROW(
          auto batches, reader.GetRecordBatchReader({static_cast<int>(group)}, {leaf}), where);
      cursor = std::make_unique<ArrayCursor>(column, kind, where,
                                             [source = std::shared_ptr(std::move(batches)), where] {
                                               return next_array(*source, where);
                                             });
      return {};
    });
    RECMILL_RETURN_IF_ERROR(opened);
    return cursor;
  }

 private:
  static Result<std::shared_ptr<arrow::Array>> next_array(arrow::RecordBatchReader& batches,
                                                          const std::string& where) {
    std::shared_ptr<arrow::Array> array;
    const Status read = without_exceptions(where, [&]() -> Status {
      std::shared_ptr<arrow::RecordBatch> batch;
      RECMILL_RETURN_IF_ARROW_ERROR(batches.ReadNext(&batch), where);
      if (batch != nullptr) array = batch->column(0);
      return {};
    });
    RECMILL_RETURN_IF_ERROR(read);
    return array;
  }

  Status read_footer(std::shared_ptr<arrow::io::RandomAccessFile> input) override {
    RECMILL_ASSIGN_OR_RETURN(whole_, open_file(input, path(), false));
    RECMILL_ASSIGN_OR_RETURN(streaming_, open_file(std::move(input), path(), true));
    RECMILL_RETURN_IF_ARROW_ERROR(whole_->GetSchema(&fields_), path());
    const auto metadata = whole_->parquet_reader()->metadata();
    int64_t all = 0;
    for (int group = 0; group < metadata->num_row_groups(); ++group) {
      const int64_t rows = metadata->RowGroup(group)->num_rows();
      if (rows < 0 || rows > metadata->num_rows() - all) break;  // and no sum overflows
      row_groups_.push_back(rows);
      all += rows;
    }
    if (static_cast<int>(row_groups_.size()) == metadata->num_row_groups() &&
        all == metadata->num_rows()) {
      return {};
    }
    return Status::Failed(path() +
                          ": its footer is damaged: " + std::to_string(metadata->num_rows()) +
                          " rows, but others in its row groups");
  }

  std::unique_ptr<parquet::arrow::FileReader> whole_, streaming_;
};

}  // namespace

Result<std::unique_ptr<RowGroupFile>> open_parquet(Files& files, const std::string& path) {
  return RowGroupFile::open<ParquetFile>(files, path);
}

}  // namespace recmill::reader
