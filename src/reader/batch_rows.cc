// SPDX-License-Identifier: Apache-2.0
#include "reader/batch_rows.h"

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
  to.samples += count;
}

void clear_rows(ColumnBatch& batch) {
  batch.samples = 0;
  batch.labels.clear();
  for (auto& column : batch.dense) column.clear();
  for (auto& column : batch.ids) {
    column.offsets.assign(1, 0);
    column.ids.clear();
    column.weights.clear();
  }
  batch.sample_weights.clear();
  batch.groups.clear();
  batch.times.clear();
}

void clear_rows(ColumnBatch& batch, const DataSchema& schema) {
  batch.dense.resize(schema.dense.size());
  batch.ids.resize(schema.ids.size());
  clear_rows(batch);
}

}  // namespace recmill::reader
