// SPDX-License-Identifier: Apache-2.0
// Data for the tests of readers and writers: batches, and files of them in any format.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "reader/open_reader.h"
#include "reader/writers/convert.h"
#include "reader/writers/writer.h"

namespace recmill::reader {

/// Every kind of column: bags (empty ones too), weights, missing values, all times and groups.
inline DataSchema schema_of_all_kinds() {
  DataSchema schema;
  schema.dense = {"I1", "I2", "price"};
  schema.ids = {"C1", "items", "C2", "seen"};
  schema.bags = {"items", "seen"};
  schema.weighted = {"seen"};
  schema.has_sample_weight = schema.has_time = schema.has_group = true;
  return schema;
}

inline DataSchema criteo_schema() {
  DataSchema schema;
  for (int i = 1; i <= 13; ++i) schema.dense.push_back("I" + std::to_string(i));
  for (int i = 1; i <= 26; ++i) schema.ids.push_back("C" + std::to_string(i));
  return schema;
}

inline bool lists(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Rows that are a function of the seed. `integers`: dense values are what Criteo's may be.
inline ColumnBatch generate(const DataSchema& schema, uint64_t seed, int64_t samples,
                            bool integers = false) {
  ColumnBatch batch;
  batch.samples = samples;
  batch.dense.resize(schema.dense.size());
  batch.ids.resize(schema.ids.size());
  for (auto& column : batch.ids) column.offsets.push_back(0);
  const Random random(seed, Purpose::test);
  constexpr float kStrange[] = {-0.0f, 1e-45f, 3.4028235e38f, -1.1754944e-38f};
  for (int64_t row = 0; row < samples; ++row) {
    uint64_t block = 0;
    const auto next = [&] { return random.bits64(static_cast<uint64_t>(row), block++); };
    batch.labels.push_back(static_cast<float>(next() % 2));
    if (schema.has_sample_weight) batch.sample_weights.push_back(Random::unit(next() >> 32));
    if (schema.has_time) batch.times.push_back(static_cast<int64_t>(next()) >> 20);
    if (schema.has_group) batch.groups.push_back(next());
    for (auto& column : batch.dense) {
      const uint64_t bits = next();
      float value =
          integers ? static_cast<float>(bits % 5000) - 3 : (Random::unit(bits >> 32) - 0.5f) * 1e4f;
      if (!integers && bits % 17 == 0) value = kStrange[(bits >> 8) % 4];
      column.push_back(bits % 4 == 0 ? std::numeric_limits<float>::quiet_NaN() : value);
    }
    for (size_t c = 0; c < batch.ids.size(); ++c) {
      IdColumn& column = batch.ids[c];
      const uint64_t count = next() % (lists(schema.bags, schema.ids[c]) ? 5 : 2);
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t bits = next();
        column.ids.push_back(bits % 3 == 0 ? bits : bits % 50);
        if (lists(schema.weighted, schema.ids[c])) {
          column.weights.push_back(Random::unit(bits >> 32));
        }
      }
      column.offsets.push_back(static_cast<int64_t>(column.ids.size()));
    }
  }
  return batch;
}

inline Status write_file(const std::string& path, const DataSchema& schema,
                         const ColumnBatch& batch, int64_t row_group_rows = 100) {
  WriterOptions options;
  options.row_group_rows = row_group_rows;
  RECMILL_ASSIGN_OR_RETURN(auto writer, open_writer(options, path, schema, posix_files()));
  RECMILL_RETURN_IF_ERROR(writer->write(batch));
  return writer->close();
}

/// How a file that a Writer wrote is read.
inline DataOptions options_for(const std::string& path, const DataSchema& schema) {
  DataOptions options;
  options.train = {path};
  options.cache = "";
  if (path.find(".tsv") != std::string::npos) options.format = DataFormat::criteo_tsv;
  if (path.find(".csv") != std::string::npos) {
    options.format = DataFormat::csv;
    options.columns = written_columns(schema);
  }
  if (path.ends_with(".parquet")) options.format = DataFormat::parquet;
  if (path.ends_with(".arrow")) options.format = DataFormat::arrow_ipc;
  return options;
}

}  // namespace recmill::reader
