// SPDX-License-Identifier: Apache-2.0
#include "reader/arrow/arrow_stream_reader.h"

#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/type_traits.h>
#include <arrow/util/key_value_metadata.h>

#include <algorithm>
#include <mutex>

#include "base/log.h"
#include "reader/arrow/arrow_checksum.h"
#include "reader/arrow/arrow_files.h"
#include "reader/columnar/array_cursor.h"
#include "reader/columnar/columnar_roles.h"

namespace recmill::reader {
namespace {

struct ByteRange {
  int64_t begin = 0, end = 0;
};

/// Takes the record batches of a stream as they are decoded.
class Decoded final : public arrow::ipc::Listener {
 public:
  std::vector<arrow::RecordBatchWithMetadata> batches;

  arrow::Status OnRecordBatchWithMetadataDecoded(arrow::RecordBatchWithMetadata batch) override {
    batches.push_back(std::move(batch));
    return arrow::Status::OK();
  }
};

arrow::ipc::IpcReadOptions options_for(std::vector<int> fields) {
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  options.included_fields = std::move(fields);
  return options;
}

/// The field that costs least to decode.
int small_field(const arrow::Schema& schema) {
  const auto& all = schema.fields();
  const auto small = std::ranges::find_if(
      all, [](const auto& field) { return arrow::is_primitive(field->type()->id()); });
  return small == all.end() ? 0 : static_cast<int>(small - all.begin());
}

class ArrowStreamFile final : public RowGroupFile {
 public:
  Result<std::unique_ptr<FieldCursor>> open(int64_t group, const BoundColumn& column, CellKind kind,
                                            bool) override {
    const std::string where = place_of(column, kind);
    RECMILL_ASSIGN_OR_RETURN(const auto batch, batch_of(group));
    const int field = column.place_of(kind).field;
    auto array = batch.batch->column(field);
    // Offsets and sizes are the file's word: believe them only after a look.
    RECMILL_RETURN_IF_ARROW_ERROR(array->ValidateFull(), where);
    const auto& metadata = batch.custom_metadata;
    if (metadata != nullptr && metadata->Contains(kBatchCrcKey) &&
        !crc_is(*array, *metadata->Get(kBatchCrcKey), field)) {
      return Status::Failed(where + ": record batch " + std::to_string(group) +
                            " is damaged (checksum)");
    }
    auto once = [array]() mutable -> Result<std::shared_ptr<arrow::Array>> {
      return std::exchange(array, nullptr);
    };
    return std::unique_ptr<FieldCursor>(new ArrayCursor(column, kind, where, std::move(once)));
  }

 private:
  /// Dictionaries that come before a record batch; later ones replace those before, or add to them.
  struct Dictionary {
    ByteRange bytes;
    size_t batch;
  };

  Result<std::shared_ptr<arrow::Buffer>> read(int64_t begin, int64_t count) const {
    if (count > size_ - begin) {
      return Status::Failed(path() + ": is cut within a message: " + std::to_string(count) +
                            " bytes should follow byte " + std::to_string(begin));
    }
    RECMILL_ASSIGN_FROM_ARROW(auto bytes, input_->ReadAt(begin, count), path());
    if (bytes->size() == count) return bytes;
    return Status::Failed(path() + ": became shorter while it was read");
  }

  /// A record batch, the last one of which is kept: all of its fields are in one message.
  Result<arrow::RecordBatchWithMetadata> batch_of(int64_t group) {
    const std::lock_guard lock(reading_);
    if (group_ == group) return batch_;
    const auto number = static_cast<size_t>(group);
    std::vector<ByteRange> ranges{schema_bytes_};
    for (const Dictionary& dictionary : dictionaries_) {
      if (dictionary.batch <= number) ranges.push_back(dictionary.bytes);
    }
    ranges.push_back(batches_[number]);
    auto decoded = std::make_shared<Decoded>();
    arrow::ipc::StreamDecoder decoder(decoded, options_for({}));
    for (const ByteRange range : ranges) {
      RECMILL_ASSIGN_OR_RETURN(auto bytes, read(range.begin, range.end - range.begin));
      RECMILL_RETURN_IF_ARROW_ERROR(decoder.Consume(std::move(bytes)), path());
    }
    if (decoded->batches.size() != 1 ||
        decoded->batches[0].batch->num_rows() != row_groups_[number]) {
      return Status::Failed(path() + ": changed while it was read");
    }
    batch_ = std::move(decoded->batches[0]);
    group_ = group;
    return batch_;
  }

  Status read_footer(std::shared_ptr<arrow::io::RandomAccessFile> input) override {
    input_ = std::move(input);
    RECMILL_ASSIGN_FROM_ARROW(size_, input_->GetSize(), path());
    auto ignored = std::make_shared<Decoded>();
    arrow::ipc::StreamDecoder schema(ignored, options_for({}));
    RECMILL_RETURN_IF_ERROR(pass(schema, [&](ByteRange) { return schema.schema() == nullptr; }));
    fields_ = schema.schema();
    if (fields_->num_fields() == 0) return {};
    auto decoded = std::make_shared<Decoded>();
    arrow::ipc::StreamDecoder decoder(decoded, options_for({small_field(*fields_)}));
    arrow::ipc::ReadStats before;
    return pass(decoder, [&](ByteRange message) {
      const arrow::ipc::ReadStats now = decoder.stats();
      if (now.num_record_batches > before.num_record_batches) {
        batches_.push_back(message);
        row_groups_.push_back(decoded->batches.back().batch->num_rows());
        decoded->batches.clear();
      } else if (now.num_dictionary_batches > before.num_dictionary_batches) {
        dictionaries_.push_back({message, batches_.size()});
      } else {
        schema_bytes_ = message;
      }
      before = now;
      return true;
    });
  }

  /// Has `decoder` decode the messages from the first on; take(where it is) says whether to go
  /// on.
  template <typename Take>
  Status pass(arrow::ipc::StreamDecoder& decoder, Take take) {
    int64_t at = 0;
    for (ByteRange message; decoder.next_required_size() > 0;) {
      if (at == size_ && message.begin == at) {
        log_warning_once(path() +
                         ": ends without the mark of a stream's end; rows are lost where whoever "
                         "wrote it had not finished");
        return {};
      }
      const int64_t messages = decoder.stats().num_messages;
      RECMILL_ASSIGN_OR_RETURN(auto bytes, read(at, decoder.next_required_size()));
      at += bytes->size();
      RECMILL_RETURN_IF_ARROW_ERROR(decoder.Consume(std::move(bytes)), path());
      if (decoder.stats().num_messages == messages) continue;
      message.end = at;
      if (!take(message)) return {};
      message.begin = at;
    }
    if (at == size_) return {};
    return Status::Failed(path() + ": " + std::to_string(size_ - at) +
                          " bytes follow the end of its stream");
  }

  std::shared_ptr<arrow::io::RandomAccessFile> input_;
  int64_t size_ = 0;
  ByteRange schema_bytes_;
  std::vector<Dictionary> dictionaries_;
  std::vector<ByteRange> batches_;  // [row groups]

  std::mutex reading_;
  int64_t group_ = -1;  // that batch_ is of
  arrow::RecordBatchWithMetadata batch_;
};

}  // namespace

Result<std::unique_ptr<RowGroupFile>> open_arrow_stream(Files& files, const std::string& path) {
  return RowGroupFile::open<ArrowStreamFile>(files, path);
}

}  // namespace recmill::reader
