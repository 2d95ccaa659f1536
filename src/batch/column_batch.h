// SPDX-License-Identifier: Apache-2.0
// Raw columns, as a reader hands them on: ids are still raw 64-bit ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace recmill {

/// A bag of raw ids for each sample. A missing cell is an empty bag.
struct IdColumn {
  std::vector<int64_t> offsets;  // [samples + 1]
  std::vector<uint64_t> ids;     // [offsets.back()]
  std::vector<float> weights;    // [offsets.back()] or empty: all 1
};

/// Where samples are from, of a reader that was asked for it; else all are empty.
struct RowKeys {
  std::vector<int32_t> files;      // [samples], of the reader's files
  std::vector<int64_t> numbers;    // [samples], rows of the file before it, bad ones too
  std::vector<std::string> cells;  // [samples], of the column that was named
};

struct ColumnBatch {
  int64_t first = 0;  // position of sample 0 in the reader's seeded order
  int64_t samples = 0;
  std::vector<float> labels;              // [samples]; NaN: none, where that was asked for
  std::vector<std::vector<float>> dense;  // [columns][samples]; NaN: missing
  std::vector<IdColumn> ids;              // [columns]
  std::vector<float> sample_weights;      // [samples] or empty: all 1
  std::vector<uint64_t> groups;           // [samples] or empty
  std::vector<int64_t> times;             // [samples] or empty, as in the data (often unix seconds)
  RowKeys keys;
};

/// Appends samples `which` of `from` (ascending) to `to`, which has the same columns or is blank.
void append_samples(const ColumnBatch& from, std::span<const int64_t> which, ColumnBatch& to);

/// Empties all columns and keeps their memory.
void clear_samples(ColumnBatch& batch);

}  // namespace recmill
