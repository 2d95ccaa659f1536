// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/arrow_ipc_reader.h"

#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/type_traits.h>
#include <arrow/util/key_value_metadata.h>

#include <algorithm>

#include "reader/arrow/arrow_checksum.h"
#include "reader/arrow/arrow_files.h"
#include "reader/arrow/arrow_stream_reader.h"
#include "reader/columnar/array_cursor.h"
#include "reader/columnar/columnar_roles.h"

namespace recmill::reader {
namespace {

class ArrowIpcFile final : public RowGroupFile {
 public:
  Result<std::unique_ptr<FieldCursor>> open(int64_t group, const BoundColumn& column, CellKind kind,
                                            bool) override {
    const std::string where = place_of(column, kind);
    // Decoded here and not on demand: a reader object is for one thread.
    RECMILL_ASSIGN_OR_RETURN(
        std::shared_ptr<arrow::Array> array,
        read_field(static_cast<int>(group), column.place_of(kind).field, where));
    auto once = [array]() mutable -> Result<std::shared_ptr<arrow::Array>> {
      return std::exchange(array, nullptr);
    };
    return std::unique_ptr<FieldCursor>(new ArrayCursor(column, kind, where, std::move(once)));
  }

 private:
  static arrow::ipc::IpcReadOptions options_for(std::vector<int> fields) {
    auto options = arrow::ipc::IpcReadOptions::Defaults();
    options.use_threads = false;
    options.included_fields = std::move(fields);
    return options;
  }

  Result<std::shared_ptr<arrow::Array>> read_field(int group, int field,
                                                   const std::string& where) const {
    std::shared_ptr<arrow::Array> array;
    const Status read = without_exceptions(where, [&]() -> Status {
      RECMILL_ASSIGN_FROM_ARROW(
          auto reader, arrow::ipc::RecordBatchFileReader::Open(input_.get(), options_for({field})),
          where);
      RECMILL_ASSIGN_FROM_ARROW(const auto read, reader->ReadRecordBatchWithCustomMetadata(group),
                                where);
      // Offsets and sizes are the file's word: believe them only after a look.
      RECMILL_RETURN_IF_ARROW_ERROR(read.batch->ValidateFull(), where);
      array = read.batch->column(0);
      if (read.custom_metadata == nullptr || !read.custom_metadata->Contains(kBatchCrcKey))
        return {};
      if (crc_is(*array, *read.custom_metadata->Get(kBatchCrcKey), field)) return {};
      return Status::Failed(where + ": record batch " + std::to_string(group) +
                            " is damaged (checksum)");
    });
    RECMILL_RETURN_IF_ERROR(read);
    if (array->length() != row_groups_[static_cast<size_t>(group)]) {
      return Status::Failed(where + ": record batch " + std::to_string(group) + " has " +
                            std::to_string(array->length()) + " rows, not " +
                            std::to_string(row_groups_[static_cast<size_t>(group)]));
    }
    return array;
  }

  Status read_footer(std::shared_ptr<arrow::io::RandomAccessFile> input) override {
    input_ = std::move(input);
    RECMILL_ASSIGN_FROM_ARROW(
        auto reader, arrow::ipc::RecordBatchFileReader::Open(input_.get(), options_for({})),
        path());
    fields_ = reader->schema();
    if (fields_->num_fields() == 0) return {};
    // Row counts are in the headers of the record batches: read them with one field, a small one.
    const auto& all = fields_->fields();
    const auto small = std::ranges::find_if(
        all, [](const auto& field) { return arrow::is_primitive(field->type()->id()); });
    const auto field = small == all.end() ? 0 : static_cast<int>(small - all.begin());
    RECMILL_ASSIGN_FROM_ARROW(
        auto counter, arrow::ipc::RecordBatchFileReader::Open(input_.get(), options_for({field})),
        path());
    for (int group = 0; group < counter->num_record_batches(); ++group) {
      RECMILL_ASSIGN_FROM_ARROW(auto batch, counter->ReadRecordBatch(group), path());
      if (batch->num_rows() < 0) {
        return Status::Failed(path() + ": record batch " + std::to_string(group) + " has " +
                              std::to_string(batch->num_rows()) + " rows");
      }
      row_groups_.push_back(batch->num_rows());
    }
    return {};
  }

  std::shared_ptr<arrow::io::RandomAccessFile> input_;
};

}  // namespace

Result<std::unique_ptr<RowGroupFile>> open_arrow_ipc(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const auto file, files.open(path));
  std::string magic(4, '\0');
  RECMILL_ASSIGN_OR_RETURN(const size_t size,
                           file->read(0, std::as_writable_bytes(std::span(magic))));
  magic.resize(size);
  if (magic == "\xFF\xFF\xFF\xFF") return open_arrow_stream(files, path);
  if (magic == "FEA1") {
    return Status::BadRequest(
        path + ": is Feather of version 1, which is no Arrow IPC; write it as version 2");
  }
  return RowGroupFile::open<ArrowIpcFile>(files, path);
}

}  // namespace recmill::reader
