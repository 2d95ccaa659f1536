// SPDX-License-Identifier: Apache-2.0
#include "batch/column_batch.h"

namespace recmill {
namespace {

template <typename T>
void append(const std::vector<T>& from, std::span<const int64_t> which, std::vector<T>& to) {
  if (from.empty()) return;
  for (const int64_t sample : which) to.push_back(from[sample]);
}

void append(const IdColumn& from, std::span<const int64_t> which, IdColumn& to) {
  if (to.offsets.empty()) to.offsets.push_back(0);
  for (const int64_t sample : which) {
    const int64_t begin = from.offsets[sample], end = from.offsets[sample + 1];
    to.ids.insert(to.ids.end(), from.ids.begin() + begin, from.ids.begin() + end);
    if (!from.weights.empty()) {
      to.weights.insert(to.weights.end(), from.weights.begin() + begin, from.weights.begin() + end);
    }
    to.offsets.push_back(static_cast<int64_t>(to.ids.size()));
  }
}

}  // namespace

void append_samples(const ColumnBatch& from, std::span<const int64_t> which, ColumnBatch& to) {
  to.dense.resize(from.dense.size());
  to.ids.resize(from.ids.size());
  append(from.labels, which, to.labels);
  append(from.sample_weights, which, to.sample_weights);
  append(from.groups, which, to.groups);
  append(from.times, which, to.times);
  append(from.keys.files, which, to.keys.files);
  append(from.keys.numbers, which, to.keys.numbers);
  append(from.keys.cells, which, to.keys.cells);
  for (size_t c = 0; c < from.dense.size(); ++c) append(from.dense[c], which, to.dense[c]);
  for (size_t c = 0; c < from.ids.size(); ++c) append(from.ids[c], which, to.ids[c]);
  to.samples += static_cast<int64_t>(which.size());
}

void clear_samples(ColumnBatch& batch) {
  batch.samples = 0;
  batch.labels.clear();
  batch.sample_weights.clear();
  batch.groups.clear();
  batch.times.clear();
  batch.keys = {};
  for (auto& column : batch.dense) column.clear();
  for (auto& column : batch.ids) {
    column.offsets.assign(1, 0);
    column.ids.clear();
    column.weights.clear();
  }
}

}  // namespace recmill
