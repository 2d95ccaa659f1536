// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/columnar_writer.h"

#include <arrow/api.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/key_value_metadata.h>
#include <arrow/util/utf8.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <cmath>

#include "reader/arrow/arrow_checksum.h"
#include "reader/arrow/arrow_files.h"
#include "reader/batch_rows.h"
#include "reader/columnar/columnar_roles.h"
#include "reader/columnar/columnar_schema.h"

namespace recmill::reader {
namespace {

/// Where finished row groups go.
class RowGroupSink {
 public:
  virtual ~RowGroupSink() = default;
  virtual Status write(const arrow::RecordBatch& batch) = 0;
  virtual Status close() = 0;
};

std::shared_ptr<parquet::WriterProperties> parquet_properties(int64_t row_group_rows) {
  parquet::WriterProperties::Builder builder;
  builder.compression(parquet::Compression::ZSTD);
  builder.enable_page_checksum();
  builder.max_row_group_length(row_group_rows);
  builder.disable_statistics();
  return builder.build();
}

/// What both formats share: the file, and the first error that it answered.
class FileSink : public RowGroupSink {
 protected:
  FileSink(std::string path, std::unique_ptr<WritableFile> file)
      : path_(std::move(path)), output_(arrow_output(std::move(file), failure_)) {}

  /// The file's own error in its own words, else Arrow's.
  Status worded(const Status& status) const { return failure_.ok() ? status : failure_; }

  const std::string path_;
  Status failure_;
  std::shared_ptr<arrow::io::OutputStream> output_;
};

class ParquetSink final : public FileSink {
 public:
  static Result<std::unique_ptr<RowGroupSink>> open(int64_t row_group_rows, const std::string& path,
                                                    const arrow::Schema& schema, Files& files) {
    RECMILL_ASSIGN_OR_RETURN(auto file, AtomicFile::create(files, path));
    std::unique_ptr<ParquetSink> sink(new ParquetSink(path, std::move(file)));
    const Status opened = without_exceptions(path, [&]() -> Status {
      RECMILL_ASSIGN_FROM_ARROW(
          sink->writer_,
          parquet::arrow::FileWriter::Open(
              schema, arrow::default_memory_pool(), sink->output_,
              parquet_properties(row_group_rows),
              parquet::ArrowWriterProperties::Builder().store_schema()->build()),
          path);
      return {};
    });
    RECMILL_RETURN_IF_ERROR(sink->worded(opened));
    return std::unique_ptr<RowGroupSink>(std::move(sink));
  }

  Status write(const arrow::RecordBatch& batch) override {
    return worded(without_exceptions(path_, [&] {
      auto table = arrow::Table::Make(batch.schema(), batch.columns(), batch.num_rows());
      return from_arrow(writer_->WriteTable(*table, batch.num_rows()), path_);
    }));
  }
  Status close() override {
    return worded(without_exceptions(path_, [&]() -> Status {
      RECMILL_RETURN_IF_ARROW_ERROR(writer_->Close(), path_);
      return from_arrow(output_->Close(), path_);
    }));
  }

 private:
  using FileSink::FileSink;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
};

class ArrowSink final : public FileSink {
 public:
  static Result<std::unique_ptr<RowGroupSink>> open(const std::string& path,
                                                    const std::shared_ptr<arrow::Schema>& schema,
                                                    Files& files) {
    RECMILL_ASSIGN_OR_RETURN(auto file, AtomicFile::create(files, path));
    std::unique_ptr<ArrowSink> sink(new ArrowSink(path, std::move(file)));
    auto options = arrow::ipc::IpcWriteOptions::Defaults();
    options.use_threads = false;
    auto writer = arrow::ipc::MakeFileWriter(sink->output_, schema, options);
    RECMILL_RETURN_IF_ERROR(sink->worded(from_arrow(writer.status(), path)));
    sink->writer_ = *std::move(writer);
    return std::unique_ptr<RowGroupSink>(std::move(sink));
  }

  Status write(const arrow::RecordBatch& batch) override {
    auto crc = arrow::key_value_metadata({kBatchCrcKey}, {crc_of_fields(batch)});
    return worded(from_arrow(writer_->WriteRecordBatch(batch, crc), path_));
  }
  Status close() override {
    RECMILL_RETURN_IF_ERROR(worded(from_arrow(writer_->Close(), path_)));
    return worded(from_arrow(output_->Close(), path_));
  }

 private:
  using FileSink::FileSink;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
};

std::shared_ptr<arrow::Field> field_of(const std::string& name,
                                       std::shared_ptr<arrow::DataType> type, bool nullable,
                                       std::string_view role) {
  return arrow::field(name, std::move(type), nullable,
                      arrow::key_value_metadata({kRoleKey}, {std::string(role)}));
}

std::shared_ptr<arrow::DataType> list_of(const std::shared_ptr<arrow::DataType>& type) {
  return arrow::list(arrow::field("item", type, /*nullable=*/false));
}

/// The fields of a data set, in file order.
std::shared_ptr<arrow::Schema> arrow_schema(const DataSchema& schema,
                                            const std::string& number_field) {
  arrow::FieldVector fields;
  const auto add = [&](const std::string& name, auto type, bool nullable, ColumnRole role) {
    fields.push_back(field_of(name, std::move(type), nullable, name_of(role)));
  };
  add("label", arrow::float32(), false, ColumnRole::label);
  if (schema.has_sample_weight) {
    add("sample_weight", arrow::float32(), false, ColumnRole::sample_weight);
  }
  if (schema.has_time) add("time", arrow::int64(), false, ColumnRole::time);
  if (schema.has_group) add("group", arrow::uint64(), false, ColumnRole::group);
  for (const auto& name : schema.dense) add(name, arrow::float32(), true, ColumnRole::dense);
  for (const auto& name : schema.ids) {
    const bool bag = std::ranges::count(schema.bags, name) > 0;
    add(name, bag ? list_of(arrow::uint64()) : arrow::uint64(), !bag, ColumnRole::id);
    if (std::ranges::count(schema.weighted, name) > 0) {
      fields.push_back(
          field_of(name + kWeightsSuffix, list_of(arrow::float32()), false, kWeightsRole));
    }
  }
  if (!number_field.empty())
    fields.push_back(arrow::field(number_field, arrow::int64(), /*nullable=*/false));
  auto metadata = arrow::key_value_metadata({kSchemaCrcKey}, {schema_crc(fields)});
  return arrow::schema(std::move(fields), std::move(metadata));
}

template <typename T>
std::shared_ptr<arrow::Buffer> view_of(const std::vector<T>& values) {
  return arrow::Buffer::Wrap(values);
}

template <typename T>
std::shared_ptr<arrow::Array> plain_array(const std::shared_ptr<arrow::DataType>& type,
                                          const std::vector<T>& values) {
  return arrow::MakeArray(arrow::ArrayData::Make(type, static_cast<int64_t>(values.size()),
                                                 {nullptr, view_of(values)}, 0));
}

/// Row groups from batches. The arrays that a sink is given are views of the row group so far.
class ColumnarWriter final : public Writer {
 public:
  ColumnarWriter(std::string path, DataSchema schema, const WriterOptions& options,
                 std::shared_ptr<arrow::Schema> arrow_schema, std::unique_ptr<RowGroupSink> sink)
      : path_(std::move(path)),
        schema_(std::move(schema)),
        row_group_rows_(options.row_group_rows),
        has_numbers_(!options.number_field.empty()),
        arrow_schema_(std::move(arrow_schema)),
        sink_(std::move(sink)) {}

  Status write(const ColumnBatch& batch) override {
    RECMILL_RETURN_IF_ERROR(check(batch));
    for (int64_t done = 0; done < batch.samples;) {
      const int64_t count = std::min(batch.samples - done, row_group_rows_ - group_.samples);
      append_rows(batch, done, count, group_);
      for (size_t column = 0; column < group_.ids.size(); ++column) {
        IdColumn& ids = group_.ids[column];
        if (has_weights(schema_.ids[column])) ids.weights.resize(ids.ids.size(), 1.0f);
      }
      done += count;
      if (group_.samples == row_group_rows_) RECMILL_RETURN_IF_ERROR(flush());
    }
    return {};
  }

  Status close() override {
    if (group_.samples > 0) RECMILL_RETURN_IF_ERROR(flush());
    return sink_->close();
  }

 private:
  bool is_bag(const std::string& name) const { return std::ranges::count(schema_.bags, name) > 0; }
  bool has_weights(const std::string& name) const {
    return std::ranges::count(schema_.weighted, name) > 0;
  }

  Status check(const ColumnBatch& batch) const {
    RECMILL_CHECK(batch.dense.size() == schema_.dense.size(), path_);
    RECMILL_CHECK(batch.ids.size() == schema_.ids.size(), path_);
    for (size_t column = 0; column < batch.ids.size(); ++column) {
      const std::string& name = schema_.ids[column];
      const IdColumn& ids = batch.ids[column];
      if (!ids.weights.empty() && !has_weights(name)) {
        return Status::BadRequest(path_ + ": column '" + name +
                                  "': weights in a column that is not declared to have them");
      }
      if (is_bag(name)) continue;
      for (int64_t sample = 0; sample < batch.samples; ++sample) {
        const int64_t count =
            ids.offsets[static_cast<size_t>(sample) + 1] - ids.offsets[static_cast<size_t>(sample)];
        if (count <= 1) continue;
        return Status::BadRequest(path_ + ": column '" + name + "', row " +
                                  std::to_string(rows_ + group_.samples + sample) + ": " +
                                  std::to_string(count) + " ids in a column of single ids");
      }
    }
    return {};
  }

  Status flush() {
    arrow::ArrayVector arrays;
    arrays.push_back(plain_array(arrow::float32(), group_.labels));
    if (schema_.has_sample_weight) {
      arrays.push_back(plain_array(arrow::float32(), group_.sample_weights));
    }
    if (schema_.has_time) arrays.push_back(plain_array(arrow::int64(), group_.times));
    if (schema_.has_group) arrays.push_back(plain_array(arrow::uint64(), group_.groups));
    for (const auto& column : group_.dense) {
      RECMILL_RETURN_IF_ERROR(append_dense(column, arrays));
    }
    for (size_t column = 0; column < group_.ids.size(); ++column) {
      RECMILL_RETURN_IF_ERROR(append_ids(schema_.ids[column], group_.ids[column], arrays));
    }
    if (has_numbers_) arrays.push_back(plain_array(arrow::int64(), group_.keys.numbers));
    auto batch = arrow::RecordBatch::Make(arrow_schema_, group_.samples, std::move(arrays));
    RECMILL_RETURN_IF_ERROR(sink_->write(*batch));
    rows_ += group_.samples;
    clear_samples(group_);
    return {};
  }

  Status append_dense(const std::vector<float>& column, arrow::ArrayVector& arrays) const {
    arrow::FloatBuilder builder;
    RECMILL_RETURN_IF_ARROW_ERROR(builder.Reserve(static_cast<int64_t>(column.size())), path_);
    for (const float value : column) {
      std::isnan(value) ? builder.UnsafeAppendNull() : builder.UnsafeAppend(value);
    }
    RECMILL_RETURN_IF_ARROW_ERROR(builder.Finish(&arrays.emplace_back()), path_);
    return {};
  }

  Status append_ids(const std::string& name, const IdColumn& ids,
                    arrow::ArrayVector& arrays) const {
    if (is_bag(name)) {
      RECMILL_RETURN_IF_ERROR(
          append_list(name, ids, plain_array(arrow::uint64(), ids.ids), arrays));
      if (!has_weights(name)) return {};
      return append_list(name, ids, plain_array(arrow::float32(), ids.weights), arrays);
    }
    arrow::UInt64Builder builder;
    RECMILL_RETURN_IF_ARROW_ERROR(builder.Reserve(group_.samples), path_);
    for (size_t sample = 0; sample + 1 < ids.offsets.size(); ++sample) {
      const auto begin = static_cast<size_t>(ids.offsets[sample]);
      const bool missing = ids.offsets[sample] == ids.offsets[sample + 1];
      missing ? builder.UnsafeAppendNull() : builder.UnsafeAppend(ids.ids[begin]);
    }
    RECMILL_RETURN_IF_ARROW_ERROR(builder.Finish(&arrays.emplace_back()), path_);
    return {};
  }

  Status append_list(const std::string& name, const IdColumn& ids,
                     const std::shared_ptr<arrow::Array>& items, arrow::ArrayVector& arrays) const {
    if (ids.offsets.back() > std::numeric_limits<int32_t>::max()) {
      return Status::BadRequest(path_ + ": column '" + name + "': a row group of " +
                                std::to_string(ids.offsets.back()) +
                                " ids is too large; lower row_group_rows");
    }
    arrow::Int32Builder offsets;
    RECMILL_RETURN_IF_ARROW_ERROR(offsets.Reserve(group_.samples + 1), path_);
    for (const int64_t offset : ids.offsets) offsets.UnsafeAppend(static_cast<int32_t>(offset));
    RECMILL_ASSIGN_FROM_ARROW(const auto finished, offsets.Finish(), path_);
    arrays.push_back(std::make_shared<arrow::ListArray>(list_of(items->type()), group_.samples,
                                                        finished->data()->buffers[1], items));
    return {};
  }

  const std::string path_;
  const DataSchema schema_;
  const int64_t row_group_rows_;
  const bool has_numbers_;
  const std::shared_ptr<arrow::Schema> arrow_schema_;
  const std::unique_ptr<RowGroupSink> sink_;
  ColumnBatch group_;  // rows of the row group so far
  int64_t rows_ = 0;   // in finished row groups
};

template <typename Number>
Result<std::shared_ptr<arrow::Array>> array_of(std::span<const Number> values,
                                               const std::string& path) {
  typename arrow::CTypeTraits<Number>::BuilderType builder;
  RECMILL_RETURN_IF_ARROW_ERROR(builder.Reserve(static_cast<int64_t>(values.size())), path);
  for (const Number value : values)
    value == value ? builder.UnsafeAppend(value) : builder.UnsafeAppendNull();  // NaN
  RECMILL_ASSIGN_FROM_ARROW(auto array, builder.Finish(), path);
  return array;
}

/// As text, or, where one is none, as bytes.
Result<std::shared_ptr<arrow::Array>> array_of(std::span<const std::string> values,
                                               const std::string& path) {
  arrow::util::InitializeUTF8();
  const bool is_text = std::ranges::all_of(
      values, [](const std::string& value) { return arrow::util::ValidateUTF8(value); });
  arrow::LargeStringBuilder text;
  arrow::LargeBinaryBuilder bytes;
  arrow::BaseBinaryBuilder<arrow::LargeBinaryType>& builder = is_text ? text : bytes;
  for (const std::string& value : values)
    RECMILL_RETURN_IF_ARROW_ERROR(builder.Append(value), path);
  RECMILL_ASSIGN_FROM_ARROW(auto array, builder.Finish(), path);
  return array;
}

Result<std::shared_ptr<arrow::RecordBatch>> batch_of(const std::vector<NamedColumn>& columns,
                                                     const std::string& path) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const NamedColumn& column : columns) {
    RECMILL_ASSIGN_OR_RETURN(
        auto array,
        std::visit([&](const auto values) { return array_of(values, path); }, column.values));
    fields.push_back(arrow::field(column.name, array->type(), array->null_count() > 0));
    arrays.push_back(std::move(array));
  }
  const auto rows = static_cast<int64_t>(columns.empty() ? 0 : columns[0].size());
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), rows, std::move(arrays));
}

}  // namespace

Result<std::unique_ptr<Writer>> open_parquet_writer(const WriterOptions& options,
                                                    const std::string& path,
                                                    const DataSchema& schema, Files& files) {
  auto fields = arrow_schema(schema, options.number_field);
  RECMILL_ASSIGN_OR_RETURN(auto sink,
                           ParquetSink::open(options.row_group_rows, path, *fields, files));
  return std::unique_ptr<Writer>(
      new ColumnarWriter(path, schema, options, std::move(fields), std::move(sink)));
}

Result<std::unique_ptr<Writer>> open_arrow_writer(const WriterOptions& options,
                                                  const std::string& path, const DataSchema& schema,
                                                  Files& files) {
  auto fields = arrow_schema(schema, options.number_field);
  RECMILL_ASSIGN_OR_RETURN(auto sink, ArrowSink::open(path, fields, files));
  return std::unique_ptr<Writer>(
      new ColumnarWriter(path, schema, options, std::move(fields), std::move(sink)));
}

Status write_columns_parquet(Files& files, const std::string& path,
                             const std::vector<NamedColumn>& columns) {
  RECMILL_ASSIGN_OR_RETURN(const auto batch, batch_of(columns, path));
  RECMILL_ASSIGN_OR_RETURN(
      auto sink, ParquetSink::open(WriterOptions{}.row_group_rows, path, *batch->schema(), files));
  RECMILL_RETURN_IF_ERROR(sink->write(*batch));
  return sink->close();
}

Status write_columns_arrow(Files& files, const std::string& path,
                           const std::vector<NamedColumn>& columns) {
  RECMILL_ASSIGN_OR_RETURN(const auto batch, batch_of(columns, path));
  RECMILL_ASSIGN_OR_RETURN(auto sink, ArrowSink::open(path, batch->schema(), files));
  const int64_t rows = WriterOptions{}.row_group_rows;
  for (int64_t done = 0; done < batch->num_rows(); done += rows)
    RECMILL_RETURN_IF_ERROR(sink->write(*batch->Slice(done, rows)));
  return sink->close();
}

}  // namespace recmill::reader
