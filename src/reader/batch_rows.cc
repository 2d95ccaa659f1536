// SPDX-License-Identifier: Apache-2.0
#include "reader/batch_rows.h"

#include <algorithm>

namespace recmill::reader {
namespace {

template <typename T>
void append(const std::vector<T>& from, int64_t first, int64_t count, std::vector<T>& to) {
  if (from.empty()) return;  // an optional column that the data set has not
  to.insert(to.end(), from.begin() + first, from.begin() + first + count);
}

void append(const IdColumn& from, int64_t first, int64_t count, IdColumn& to) {
  if (to.offsets.empty()) to.offsets.push_back(0);
  const int64_t begin = from.offsets[static_cast<size_t>(first)];
  const int64_t end = from.offsets[static_cast<size_t>(first + count)];
  const int64_t shift = to.offsets.back() - begin;
  const auto had = static_cast<int64_t>(to.ids.size());
  // Offsets are shifted in one pass over memory that is there already.
  const size_t old = to.offsets.size();
  to.offsets.resize(old + static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    to.offsets[old + static_cast<size_t>(i)] =
        from.offsets[static_cast<size_t>(first + i) + 1] + shift;
  }
  append(from.ids, begin, end - begin, to.ids);
  if (from.weights.empty() && to.weights.empty()) return;
  to.weights.resize(static_cast<size_t>(had), 1.0f);  // all 1 until now
  append(from.weights, begin, end - begin, to.weights);
  to.weights.resize(to.ids.size(), 1.0f);
}

void append(const RowKeys& from, int64_t first, int64_t count, RowKeys& to) {
  append(from.files, first, count, to.files);
  append(from.numbers, first, count, to.numbers);
  append(from.cells, first, count, to.cells);
}

template <typename T>
void copy(const std::vector<T>& from, int64_t first, int64_t count, std::vector<T>& to,
          int64_t at) {
  if (from.empty()) return;  // an optional column that the data set has not
  std::copy_n(from.begin() + first, count, to.begin() + at);
}

void copy(const IdColumn& from, int64_t first, int64_t count, IdColumn& to, int64_t at) {
  const int64_t begin = from.offsets[static_cast<size_t>(first)];
  const int64_t end = from.offsets[static_cast<size_t>(first + count)];
  const int64_t shift = static_cast<int64_t>(to.ids.size()) - begin;
  const int64_t* in = from.offsets.data() + first + 1;
  int64_t* out = to.offsets.data() + at + 1;
  for (int64_t i = 0; i < count; ++i) out[i] = in[i] + shift;
  append(from.ids, begin, end - begin, to.ids);
  append(from.weights, begin, end - begin, to.weights);
}

}  // namespace

void append_rows(const ColumnBatch& from, int64_t first, int64_t count, ColumnBatch& to) {
  to.dense.resize(from.dense.size());
  to.ids.resize(from.ids.size());
  append(from.labels, first, count, to.labels);
  for (size_t i = 0; i < from.dense.size(); ++i) append(from.dense[i], first, count, to.dense[i]);
  for (size_t i = 0; i < from.ids.size(); ++i) append(from.ids[i], first, count, to.ids[i]);
  append(from.sample_weights, first, count, to.sample_weights);
  append(from.groups, first, count, to.groups);
  append(from.times, first, count, to.times);
  append(from.keys, first, count, to.keys);
  to.samples += count;
}

void make_room(const DataSchema& schema, int64_t count, ColumnBatch& batch) {
  const auto rows = static_cast<size_t>(count);
  batch.samples = count;
  batch.labels.resize(rows);
  batch.dense.resize(schema.dense.size());
  for (auto& column : batch.dense) column.resize(rows);
  batch.ids.resize(schema.ids.size());
  for (auto& column : batch.ids) {
    column.offsets.resize(rows + 1);
    column.offsets[0] = 0;
    column.ids.clear();
    column.weights.clear();
  }
  batch.sample_weights.resize(schema.has_sample_weight ? rows : 0);
  batch.groups.resize(schema.has_group ? rows : 0);
  batch.times.resize(schema.has_time ? rows : 0);
  batch.keys = {};
}

void copy_rows(const ColumnBatch& from, int64_t first, int64_t count, ColumnBatch& to, int64_t at) {
  copy(from.labels, first, count, to.labels, at);
  for (size_t i = 0; i < from.dense.size(); ++i) {
    copy(from.dense[i], first, count, to.dense[i], at);
  }
  for (size_t i = 0; i < from.ids.size(); ++i) copy(from.ids[i], first, count, to.ids[i], at);
  copy(from.sample_weights, first, count, to.sample_weights, at);
  copy(from.groups, first, count, to.groups, at);
  copy(from.times, first, count, to.times, at);
  append(from.keys, first, count, to.keys);
}

}  // namespace recmill::reader
