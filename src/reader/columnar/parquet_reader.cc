// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/parquet_reader.h"

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>

#include <algorithm>

#include "reader/arrow/arrow_files.h"
#include "reader/columnar/array_cursor.h"
#include "reader/columnar/parquet_flat_cursor.h"

namespace recmill::reader {
namespace {

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

/// The field of that name among the children of `field`.
const parquet::arrow::SchemaField* child_named(const parquet::arrow::SchemaField& field,
                                               const std::string& name) {
  const auto found = std::ranges::find_if(
      field.children, [&](const auto& child) { return child.field->name() == name; });
  return found == field.children.end() ? nullptr : &*found;
}

/// What is stored of the values at `place`, a field of numbers or text; null: nothing.
const parquet::arrow::SchemaField* stored_at(const parquet::arrow::SchemaManifest& manifest,
                                             const FieldPlace& place) {
  const auto* field = &manifest.schema_fields[static_cast<size_t>(place.field)];
  for (const std::string& name : place.inside) {
    if (field != nullptr) field = child_named(*field, name);
  }
  // A list has its items as its child, and a map its pairs.
  if (field != nullptr && !place.item.empty()) {
    field = field->children.empty() ? nullptr : child_named(field->children[0], place.item);
  }
  while (field != nullptr && !field->children.empty()) field = &field->children[0];
  return field;
}

class ParquetFile final : public RowGroupFile {
 public:
  Result<std::unique_ptr<FieldCursor>> open(int64_t group, const BoundColumn& column, CellKind kind,
                                            bool sliced) override {
    const std::string where = place_of(column, kind);
    std::unique_ptr<FieldCursor> cursor;
    const Status opened = without_exceptions(where, [&]() -> Status {
      const auto* stored = stored_at(whole_->manifest(), column.place_of(kind));
      if (stored == nullptr) return Status::Failed(where + ": its type is not what is stored");
      const int leaf = stored->column_index;
      const auto metadata = whole_->parquet_reader()->metadata()->RowGroup(static_cast<int>(group));
      // A chunk that is small as it lies in the file is held whole whatever is decoded of it.
      constexpr int64_t kSmallChunk = 1 << 20;
      const bool stream =
          sliced && metadata->ColumnChunk(leaf)->total_compressed_size() > kSmallChunk;
      parquet::arrow::FileReader& reader = stream ? *streaming_ : *whole_;
      cursor = open_flat_cursor(*reader.parquet_reader()->RowGroup(static_cast<int>(group)), leaf,
                                *stored->field->type(), column, kind, where);
      if (cursor != nullptr) return {};
      RECMILL_ASSIGN_FROM_ARROW(
          auto batches, reader.GetRecordBatchReader({static_cast<int>(group)}, {leaf}), where);
      cursor =
          std::make_unique<ArrayCursor>(column, kind, where, arrays_of(std::move(batches), where));
      return {};
    });
    RECMILL_RETURN_IF_ERROR(opened);
    return cursor;
  }

 private:
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
