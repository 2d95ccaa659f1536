// SPDX-License-Identifier: Apache-2.0
// The first byte chooses Parquet or Arrow IPC (a file or a stream), the others are the file, from
// its footer to batches; bad rows are skipped.
#include <cstring>

#include "base/testing/faulty_files.h"
#include "base/testing/fuzz.h"
#include "reader/columnar/columnar_reader.h"
#include "reader/testing/samples_of.h"
#include "reader/writers/writer.h"

namespace recmill {
namespace {

constexpr const char* kNames[] = {"rows.parquet", "rows.arrow"};
constexpr DataFormat kFormats[] = {DataFormat::parquet, DataFormat::arrow_ipc};

DataSchema schema_of_all_roles() {
  DataSchema schema;
  schema.dense = {"price"};
  schema.ids = {"item", "words", "seen"};
  schema.bags = {"words", "seen"};
  schema.weighted = {"seen"};
  schema.has_sample_weight = schema.has_time = schema.has_group = true;
  return schema;
}

ColumnBatch few_rows() {
  ColumnBatch batch;
  batch.samples = 11;
  batch.dense.resize(1);
  batch.ids.resize(3);
  for (int64_t row = 0; row < batch.samples; ++row) {
    batch.labels.push_back(static_cast<float>(row % 2));
    batch.sample_weights.push_back(0.5f);
    batch.times.push_back(1000 + row);
    batch.groups.push_back(static_cast<uint64_t>(row / 3));
    batch.dense[0].push_back(static_cast<float>(row) * 0.25f);
    for (size_t c = 0; c < batch.ids.size(); ++c) {
      IdColumn& column = batch.ids[c];
      if (row == 0) column.offsets.push_back(0);
      const auto count = c == 0 ? row % 3 % 2 : row % 4;
      for (int64_t i = 0; i < count; ++i) {
        column.ids.push_back(static_cast<uint64_t>(row * 7 + i));
        if (c == 2) column.weights.push_back(1.5f);
      }
      column.offsets.push_back(static_cast<int64_t>(column.ids.size()));
    }
  }
  return batch;
}

std::string file_of(size_t format, int64_t row_group_rows) {
  FaultyFiles files;
  reader::WriterOptions options;
  options.row_group_rows = row_group_rows;
  auto writer = *reader::open_writer(options, kNames[format], schema_of_all_roles(), files);
  RECMILL_CHECK(writer->write(few_rows()).ok() && writer->close().ok());
  return files.content(kNames[format]);
}

/// The stream that an Arrow IPC file is between its magic and its footer.
std::string stream_in(const std::string& file) {
  constexpr size_t kMagic = 8, kEnd = 10;  // the footer's size and the magic again
  uint32_t footer = 0;
  std::memcpy(&footer, file.data() + file.size() - kEnd, sizeof footer);
  return file.substr(kMagic, file.size() - kMagic - kEnd - footer);
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> seeds;
  for (const size_t format : {0, 1}) {
    for (const int64_t row_group_rows : {5, 100}) {
      seeds.push_back(static_cast<char>(format) + file_of(format, row_group_rows));
      if (format == 1)
        seeds.push_back(static_cast<char>(format) + stream_in(seeds.back().substr(1)));
    }
  }
  return seeds;
}

void fuzz::feed(const std::string& bytes) {
  if (bytes.empty()) return;
  const size_t format = bytes[0] & 1;
  static ThreadPool pool(1);
  FaultyFiles files;
  RECMILL_CHECK(write_atomically(files, kNames[format], bytes.substr(1)).ok());
  DataOptions options;
  options.format = kFormats[format];
  options.train = {kNames[format]};
  options.cache = "";
  options.on_bad_row = OnBadRow::skip;
  options.bad_row_limit = 5;
  options.shuffle.window = 3;
  const auto one_line = [](const Status& status) {
    RECMILL_CHECK(status.message().find('\n') == std::string::npos, status.message());
  };
  auto reader = reader::open_columnar_reader(options, Subset::train, 7, pool, files);
  if (!reader.ok()) return one_line(reader.status());
  const auto rows = (*reader)->rows();
  if (!rows.ok()) return one_line(rows.status());
  ColumnBatch batch;
  const Status status = (*reader)->read(0, 0, *rows, batch);
  // Every row was decoded when they were counted.
  RECMILL_CHECK(status.ok(), status.message());
  RECMILL_CHECK(batch.samples == *rows);
  reader::samples_of((*reader)->schema(), batch);
}

}  // namespace recmill
