// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "batch/column_batch.h"
#include "schema/column_spec.h"

namespace recmill::reader {

inline void put_bytes(std::string& text, const void* bytes, size_t size) {
  text.append(static_cast<const char*>(bytes), size);
}

/// Each sample of a batch as bytes: equal samples, equal bytes. Checks the shape of the batch.
inline std::vector<std::string> samples_of(const DataSchema& schema, const ColumnBatch& batch) {
  const auto samples = static_cast<size_t>(batch.samples);
  RECMILL_CHECK(batch.labels.size() == samples);
  RECMILL_CHECK(batch.dense.size() == schema.dense.size());
  RECMILL_CHECK(batch.ids.size() == schema.ids.size());
  RECMILL_CHECK(batch.sample_weights.size() == (schema.has_sample_weight ? samples : 0));
  RECMILL_CHECK(batch.groups.size() == (schema.has_group ? samples : 0));
  RECMILL_CHECK(batch.times.size() == (schema.has_time ? samples : 0));
  for (const auto& column : batch.dense) RECMILL_CHECK(column.size() == samples);
  for (const auto& column : batch.ids) {
    RECMILL_CHECK(column.offsets.size() == samples + 1);
    RECMILL_CHECK(column.offsets.front() == 0);
    RECMILL_CHECK(column.offsets.back() == static_cast<int64_t>(column.ids.size()));
    RECMILL_CHECK(column.weights.empty() || column.weights.size() == column.ids.size());
  }
  std::vector<std::string> texts(samples);
  for (size_t i = 0; i < samples; ++i) {
    std::string& text = texts[i];
    put_bytes(text, &batch.labels[i], sizeof(float));
    for (const auto& column : batch.dense) put_bytes(text, &column[i], sizeof(float));
    for (const auto& column : batch.ids) {
      const int64_t size = column.offsets[i + 1] - column.offsets[i];
      put_bytes(text, &size, sizeof size);
      put_bytes(text, column.ids.data() + column.offsets[i], size * sizeof(uint64_t));
      if (!column.weights.empty()) {
        put_bytes(text, column.weights.data() + column.offsets[i], size * sizeof(float));
      }
    }
    if (schema.has_sample_weight) put_bytes(text, &batch.sample_weights[i], sizeof(float));
    if (schema.has_group) put_bytes(text, &batch.groups[i], sizeof(uint64_t));
    if (schema.has_time) put_bytes(text, &batch.times[i], sizeof(int64_t));
  }
  return texts;
}

}  // namespace recmill::reader
