// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/key_column.h"

#include <arrow/api.h>
#include <arrow/ipc/reader.h>
#include <arrow/type_traits.h>
#include <arrow/util/config.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>

#include <memory>
#ifdef ARROW_ORC
#include <arrow/adapters/orc/adapter.h>
#endif

#include "reader/arrow/arrow_files.h"

namespace recmill::reader {
namespace {

Result<std::string> text_of(const arrow::Array& array, int64_t row, const std::string& where) {
  if (array.IsNull(row)) return std::string();
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return std::string(static_cast<const arrow::BinaryArray&>(array).GetView(row));
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return std::string(static_cast<const arrow::LargeBinaryArray&>(array).GetView(row));
    case arrow::Type::FIXED_SIZE_BINARY:
      return std::string(static_cast<const arrow::FixedSizeBinaryArray&>(array).GetView(row));
    case arrow::Type::DICTIONARY: {
      const auto& codes = static_cast<const arrow::DictionaryArray&>(array);
      return text_of(*codes.dictionary(), codes.GetValueIndex(row), where);
    }
    default: {
      RECMILL_ASSIGN_FROM_ARROW(const auto value, array.GetScalar(row), where);
      return value->ToString();
    }
  }
}

Result<std::shared_ptr<arrow::ChunkedArray>> parquet_column(
    std::shared_ptr<arrow::io::RandomAccessFile> input, const std::string& name,
    const std::string& where) {
  RECMILL_ASSIGN_FROM_ARROW(
      const auto reader,
      parquet::arrow::FileReader::Make(arrow::default_memory_pool(),
                                       parquet::ParquetFileReader::Open(std::move(input))),
      where);
  std::shared_ptr<arrow::Schema> schema;
  RECMILL_RETURN_IF_ARROW_ERROR(reader->GetSchema(&schema), where);
  std::shared_ptr<arrow::ChunkedArray> column;
  RECMILL_RETURN_IF_ARROW_ERROR(reader->ReadColumn(schema->GetFieldIndex(name), &column), where);
  return column;
}

Result<std::shared_ptr<arrow::ChunkedArray>> arrow_column(
    std::shared_ptr<arrow::io::RandomAccessFile> input, const std::string& name,
    const std::string& where) {
  RECMILL_ASSIGN_FROM_ARROW(auto all, arrow::ipc::RecordBatchFileReader::Open(input.get()), where);
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.included_fields = {all->schema()->GetFieldIndex(name)};
  RECMILL_ASSIGN_FROM_ARROW(auto reader,
                            arrow::ipc::RecordBatchFileReader::Open(input.get(), options), where);
  arrow::ArrayVector chunks;
  for (int group = 0; group < reader->num_record_batches(); ++group) {
    RECMILL_ASSIGN_FROM_ARROW(auto batch, reader->ReadRecordBatch(group), where);
    RECMILL_RETURN_IF_ARROW_ERROR(batch->ValidateFull(), where);
    chunks.push_back(batch->column(0));
  }
  return std::make_shared<arrow::ChunkedArray>(std::move(chunks),
                                               reader->schema()->field(0)->type());
}

Result<std::shared_ptr<arrow::ChunkedArray>> stream_column(
    std::shared_ptr<arrow::io::RandomAccessFile> input, const std::string& name,
    const std::string& where) {
  RECMILL_ASSIGN_FROM_ARROW(auto all, arrow::ipc::RecordBatchStreamReader::Open(input.get()),
                            where);
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.included_fields = {all->schema()->GetFieldIndex(name)};
  RECMILL_RETURN_IF_ARROW_ERROR(input->Seek(0), where);
  RECMILL_ASSIGN_FROM_ARROW(auto reader,
                            arrow::ipc::RecordBatchStreamReader::Open(input.get(), options), where);
  RECMILL_ASSIGN_FROM_ARROW(const auto table, reader->ToTable(), where);
  RECMILL_RETURN_IF_ARROW_ERROR(table->ValidateFull(), where);
  return table->column(0);
}

Result<std::shared_ptr<arrow::ChunkedArray>> orc_column(
    [[maybe_unused]] std::shared_ptr<arrow::io::RandomAccessFile> input,
    [[maybe_unused]] const std::string& name, const std::string& where) {
#ifdef ARROW_ORC
  RECMILL_ASSIGN_FROM_ARROW(
      auto reader, arrow::adapters::orc::ORCFileReader::Open(input, arrow::default_memory_pool()),
      where);
  RECMILL_ASSIGN_FROM_ARROW(const auto schema, reader->ReadSchema(), where);
  const std::vector<int> fields{schema->GetFieldIndex(name)};
  RECMILL_ASSIGN_FROM_ARROW(const auto table, reader->Read(fields), where);
  return table->column(0);
#else
  return Status::BadRequest(where + ": the Arrow of this program was built without ORC");
#endif
}

Result<std::shared_ptr<arrow::ChunkedArray>> column_of(
    DataFormat format, std::shared_ptr<arrow::io::RandomAccessFile> input, const std::string& name,
    const std::string& where) {
  if (format == DataFormat::parquet) return parquet_column(std::move(input), name, where);
  if (format == DataFormat::orc) return orc_column(std::move(input), name, where);
  RECMILL_ASSIGN_FROM_ARROW(const auto magic, input->ReadAt(0, 4), where);
  return magic->ToString() == "\xFF\xFF\xFF\xFF" ? stream_column(std::move(input), name, where)
                                                 : arrow_column(std::move(input), name, where);
}

}  // namespace

Result<std::vector<std::string>> read_key_column(DataFormat format, const std::string& path,
                                                 const std::string& name, Files& files) {
  const std::string where = path + ": column '" + name + "'";
  RECMILL_ASSIGN_OR_RETURN(auto file, files.open(path));
  std::vector<std::string> cells;
  const Status read = without_exceptions(where, [&]() -> Status {
    RECMILL_ASSIGN_OR_RETURN(const auto column,
                             column_of(format, arrow_input(std::move(file)), name, where));
    cells.reserve(static_cast<size_t>(column->length()));
    for (const auto& chunk : column->chunks()) {
      for (int64_t row = 0; row < chunk->length(); ++row) {
        RECMILL_ASSIGN_OR_RETURN(auto cell, text_of(*chunk, row, where));
        cells.push_back(std::move(cell));
      }
    }
    return {};
  });
  RECMILL_RETURN_IF_ERROR(read);
  return cells;
}

}  // namespace recmill::reader
