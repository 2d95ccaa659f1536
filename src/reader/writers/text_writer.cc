// SPDX-License-Identifier: Apache-2.0
#include "reader/writers/text_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "reader/writers/compressed_file.h"

namespace recmill::reader {
namespace {

constexpr int kCriteoDense = 13;
constexpr int kCriteoIds = 26;

void append_hex(std::string& text, uint64_t id, int least_digits) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, id, 16).ptr;
  const auto count = end - digits;
  if (count < least_digits) text.append(static_cast<size_t>(least_digits - count), '0');
  text.append(digits, static_cast<size_t>(count));
}

template <typename Number>
void append_number(std::string& text, Number value) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

/// Rows as lines, a buffer at a time.
class TextWriter : public Writer {
 public:
  TextWriter(std::string path, DataSchema schema, std::unique_ptr<WritableFile> file)
      : path_(std::move(path)), schema_(std::move(schema)), file_(std::move(file)) {}

  Status write(const ColumnBatch& batch) override {
    RECMILL_CHECK(batch.dense.size() == schema_.dense.size(), path_);
    RECMILL_CHECK(batch.ids.size() == schema_.ids.size(), path_);
    for (int64_t sample = 0; sample < batch.samples; ++sample, ++rows_) {
      RECMILL_RETURN_IF_ERROR(append_line(batch, static_cast<size_t>(sample)));
      if (text_.size() >= kFlushBytes) RECMILL_RETURN_IF_ERROR(flush());
    }
    return {};
  }

  Status close() override {
    RECMILL_RETURN_IF_ERROR(flush());
    return file_->close();
  }

 protected:
  /// Appends row `sample` to text_.
  virtual Status append_line(const ColumnBatch& batch, size_t sample) = 0;

  Status cannot_hold(const std::string& column, const std::string& why) const {
    return Status::BadRequest(path_ + ": column '" + column + "', row " + std::to_string(rows_) +
                              ": " + why);
  }

  const std::string path_;
  const DataSchema schema_;
  std::string text_;

 private:
  static constexpr size_t kFlushBytes = 1 << 20;

  Status flush() {
    const Status status = file_->append(std::as_bytes(std::span(text_)));
    text_.clear();
    return status;
  }

  std::unique_ptr<WritableFile> file_;
  int64_t rows_ = 0;  // written so far
};

class CriteoWriter final : public TextWriter {
  using TextWriter::TextWriter;

  Status append_line(const ColumnBatch& batch, size_t sample) override {
    RECMILL_RETURN_IF_ERROR(append_integer("label", batch.labels[sample]));
    for (size_t column = 0; column < batch.dense.size(); ++column) {
      text_.push_back('\t');
      const float value = batch.dense[column][sample];
      if (!std::isnan(value)) RECMILL_RETURN_IF_ERROR(append_integer(schema_.dense[column], value));
    }
    for (size_t column = 0; column < batch.ids.size(); ++column) {
      text_.push_back('\t');
      const IdColumn& ids = batch.ids[column];
      const int64_t begin = ids.offsets[sample], count = ids.offsets[sample + 1] - begin;
      if (count > 1) {
        return cannot_hold(schema_.ids[column],
                           std::to_string(count) + " ids; criteo_tsv holds one, csv holds bags");
      }
      constexpr int kDigits = 8;  // as the Kaggle files have them
      if (count == 1) append_hex(text_, ids.ids[static_cast<size_t>(begin)], kDigits);
    }
    text_.push_back('\n');
    return {};
  }

  Status append_integer(const std::string& column, float value) {
    constexpr float kLargest = 9.2e18f;
    if (!(std::abs(value) < kLargest) || value != std::trunc(value)) {
      return cannot_hold(
          column,
          std::to_string(value) + " is not an integer; criteo_tsv holds integers, csv any number");
    }
    append_number(text_, static_cast<int64_t>(value));
    return {};
  }
};

class CsvWriter final : public TextWriter {
 public:
  using TextWriter::TextWriter;

  void append_header() {
    for (const ColumnSpec& column : written_columns(schema_)) {
      if (!text_.empty()) text_.push_back(',');
      text_ += column.name;
    }
    text_.push_back('\n');
  }

 private:
  Status append_line(const ColumnBatch& batch, size_t sample) override {
    append_value(batch.labels[sample]);
    if (schema_.has_sample_weight) next_cell(), append_value(batch.sample_weights[sample]);
    if (schema_.has_time) next_cell(), append_number(text_, batch.times[sample]);
    if (schema_.has_group) next_cell(), append_hex(text_, batch.groups[sample], 1);
    for (const auto& column : batch.dense) next_cell(), append_value(column[sample]);
    for (size_t column = 0; column < batch.ids.size(); ++column) {
      next_cell();
      RECMILL_RETURN_IF_ERROR(append_bag(batch.ids[column], schema_.ids[column], sample));
    }
    text_.push_back('\n');
    return {};
  }

  void next_cell() { text_.push_back(','); }

  void append_value(float value) {
    if (!std::isnan(value)) append_number(text_, value);
  }

  Status append_bag(const IdColumn& ids, const std::string& name, size_t sample) {
    const auto begin = static_cast<size_t>(ids.offsets[sample]);
    const auto end = static_cast<size_t>(ids.offsets[sample + 1]);
    if (end - begin > 1 && std::ranges::count(schema_.bags, name) == 0) {
      return cannot_hold(name, std::to_string(end - begin) + " ids in a column of single ids");
    }
    const bool weighted = std::ranges::count(schema_.weighted, name) > 0;
    if (!ids.weights.empty() && !weighted) {
      return cannot_hold(name, "weights in a column that is not declared to have them");
    }
    for (size_t i = begin; i < end; ++i) {
      if (i > begin) text_.push_back('|');
      append_hex(text_, ids.ids[i], 1);
      if (!weighted) continue;
      text_.push_back(':');
      append_number(text_, ids.weights.empty() ? 1.0f : ids.weights[i]);
    }
    return {};
  }
};

}  // namespace

Result<std::unique_ptr<Writer>> open_criteo_writer(const std::string& path,
                                                   const DataSchema& schema, Files& files) {
  const bool extra = schema.has_sample_weight || schema.has_time || schema.has_group ||
                     !schema.bags.empty() || !schema.weighted.empty();
  if (schema.dense.size() != kCriteoDense || schema.ids.size() != kCriteoIds || extra) {
    return Status::BadRequest(
        path + ": criteo_tsv holds a label, 13 dense columns and 26 columns of single ids, not " +
        std::to_string(schema.dense.size()) + " and " + std::to_string(schema.ids.size()) +
        (extra ? " with bags, weights, times or groups" : "") + "; csv holds any");
  }
  RECMILL_ASSIGN_OR_RETURN(auto file, AtomicFile::create(files, path));
  return std::unique_ptr<Writer>(
      new CriteoWriter(path, schema, compress_by_name(path, std::move(file))));
}

Result<std::unique_ptr<Writer>> open_csv_writer(const std::string& path, const DataSchema& schema,
                                                Files& files) {
  std::set<std::string> names;
  for (const ColumnSpec& column : written_columns(schema)) {
    if (column.name.find_first_of(",\"\r\n") != std::string::npos) {
      return Status::BadRequest(path + ": a csv header cannot hold the column name '" +
                                column.name + "'");
    }
    if (!names.insert(column.name).second) {
      return Status::BadRequest(path + ": two columns are named '" + column.name + "'");
    }
  }
  RECMILL_ASSIGN_OR_RETURN(auto file, AtomicFile::create(files, path));
  auto writer = std::make_unique<CsvWriter>(path, schema, compress_by_name(path, std::move(file)));
  writer->append_header();
  return std::unique_ptr<Writer>(std::move(writer));
}

}  // namespace recmill::reader
