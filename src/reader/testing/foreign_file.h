// SPDX-License-Identifier: Apache-2.0
// Files as others write them, for the tests of columnar readers, and what is read of a data set.
#pragma once

#include <arrow/adapters/orc/adapter.h>
#include <arrow/api.h>
#include <arrow/ipc/writer.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include <optional>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "reader/arrow/arrow_files.h"
#include "reader/open_reader.h"
#include "reader/testing/samples_of.h"

namespace recmill::reader {

inline const std::string& folder() {
  static const TemporaryFolder folder;
  return folder.path();
}

struct Rows {
  ColumnBatch batch;
  DataSchema schema;
  ReaderCounts counts;

  std::vector<std::string> samples() const { return samples_of(schema, batch); }
};

inline Result<Rows> read_rows(const DataOptions& options, Subset subset = Subset::train) {
  ThreadPool pool(2);
  RECMILL_ASSIGN_OR_RETURN(auto reader, open_reader(options, subset, 0, pool, posix_files()));
  Rows rows{{}, reader->schema(), {}};
  RECMILL_RETURN_IF_ERROR(reader->read(0, 0, int64_t{1} << 40, rows.batch));
  rows.counts = reader->counts();
  return rows;
}

inline Result<ColumnBatch> read_all(const DataOptions& options) {
  RECMILL_ASSIGN_OR_RETURN(Rows rows, read_rows(options));
  return std::move(rows.batch);
}

inline std::string failure_of(const DataOptions& options) {
  const auto batch = read_all(options);
  const std::string message = batch.ok() ? "read" : batch.status().message();
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

/// Columns that others wrote: arrays of any type.
struct Foreign {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  DataOptions options;
  std::shared_ptr<parquet::WriterProperties> parquet_properties =
      parquet::default_writer_properties();
  int64_t rows_at_once = 1 << 20;  // of a record batch or a stripe

  template <typename Builder, typename Value>
  void add(const std::string& name, ColumnRole role, Builder&& builder,
           const std::vector<std::optional<Value>>& values, IdText text = IdText::text) {
    for (const auto& value : values) {
      EXPECT_TRUE((value ? builder.Append(*value) : builder.AppendNull()).ok());
    }
    add_array(name, role, *builder.Finish(), text);
  }
  void add_array(const std::string& name, ColumnRole role, std::shared_ptr<arrow::Array> array,
                 IdText text = IdText::text) {
    fields.push_back(arrow::field(name, array->type()));
    arrays.push_back(std::move(array));
    if (role == ColumnRole::ignore) return;
    ColumnSpec& column = options.columns.emplace_back();
    column.name = name;
    column.role = role;
    column.id_text = text;
  }
  void label(int64_t rows) {
    add<arrow::Int8Builder, int8_t>("click", ColumnRole::label, arrow::Int8Builder(),
                                    std::vector<std::optional<int8_t>>(rows, 1));
  }
  /// Writes the columns to a file and returns how it is read.
  DataOptions write(const std::string& suffix) {
    static int count = 0;
    const std::string path = folder() + "/foreign" + std::to_string(++count) + suffix;
    const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
    Status failure;
    auto output = arrow_output(*posix_files().create(path), failure);
    if (suffix == ".parquet") {
      EXPECT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), output,
                                             parquet::DEFAULT_MAX_ROW_GROUP_LENGTH,
                                             parquet_properties)
                      .ok());
    } else if (suffix == ".orc") {
      arrow::adapters::orc::WriteOptions orc;
      orc.batch_size = std::min(orc.batch_size, rows_at_once);
      if (rows_at_once < table->num_rows()) orc.stripe_size = 1;  // a stripe for each batch
      auto writer = *arrow::adapters::orc::ORCFileWriter::Open(output.get(), orc);
      EXPECT_TRUE(writer->Write(*table).ok());
      EXPECT_TRUE(writer->Close().ok());
    } else {
      auto writer = suffix == ".arrows" ? *arrow::ipc::MakeStreamWriter(output, table->schema())
                                        : *arrow::ipc::MakeFileWriter(output, table->schema());
      EXPECT_TRUE(writer->WriteTable(*table, rows_at_once).ok());
      EXPECT_TRUE(writer->Close().ok());
    }
    EXPECT_TRUE(output->Close().ok());
    options.train = {path};
    options.format = suffix == ".parquet" ? DataFormat::parquet
                     : suffix == ".orc"   ? DataFormat::orc
                                          : DataFormat::arrow_ipc;
    return options;
  }
};

/// The ids of each row.
using Bags = std::vector<std::vector<uint64_t>>;
inline Bags bags_of(const IdColumn& ids) {
  Bags bags;
  for (size_t i = 0; i + 1 < ids.offsets.size(); ++i) {
    bags.emplace_back(ids.ids.begin() + ids.offsets[i], ids.ids.begin() + ids.offsets[i + 1]);
  }
  return bags;
}

}  // namespace recmill::reader
