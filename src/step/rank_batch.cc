// SPDX-License-Identifier: Apache-2.0
#include "step/rank_batch.h"

namespace recmill::train {
namespace {

template <typename T>
void copy_range(const std::vector<T>& whole, int64_t begin, int64_t end, std::vector<T>& part) {
  if (whole.empty()) {
    part.clear();
  } else {
    part.assign(whole.begin() + begin, whole.begin() + end);
  }
}

}  // namespace

int64_t RankBatch::held_bytes() const {
  const auto bytes_of = [](const auto& values) {
    return static_cast<int64_t>(values.size() * sizeof(values[0]));
  };
  int64_t bytes = bytes_of(dense.values) + bytes_of(dense.labels) + bytes_of(dense.sample_weights) +
                  bytes_of(dense.groups) + bytes_of(keys.files) + bytes_of(keys.numbers) +
                  bytes_of(unlabelled);
  for (const SparseFeature& feature : sparse.features)
    bytes += bytes_of(feature.offsets) + bytes_of(feature.rows) + bytes_of(feature.weights);
  return bytes;
}

Status prepare(store::EmbeddingStore& store, RankBatch& batch) {
  store::Batch seen;
  seen.iteration = batch.before.iteration;
  seen.purpose = batch.purpose;
  seen.cut = batch.cut;
  seen.first_slice = batch.first_slice;
  seen.end_slice = batch.end_slice;
  seen.sparse = &batch.sparse;
  seen.plan = batch.plan;
  RECMILL_ASSIGN_OR_RETURN(batch.prepared, store.prepare(seen));
  return {};
}

void copy_samples(const DenseBatch& whole, int64_t begin, int64_t end, DenseBatch& part) {
  part.first = whole.first + begin;
  part.samples = end - begin;
  part.columns = whole.columns;
  copy_range(whole.values, begin * whole.columns, end * whole.columns, part.values);
  copy_range(whole.labels, begin, end, part.labels);
  copy_range(whole.sample_weights, begin, end, part.sample_weights);
  copy_range(whole.groups, begin, end, part.groups);
}

void copy_samples(const SparseBatch& whole, int64_t begin, int64_t end, SparseBatch& part) {
  part.first = whole.first + begin;
  part.samples = end - begin;
  part.features.resize(whole.features.size());
  for (size_t f = 0; f < whole.features.size(); ++f) {
    const SparseFeature& from = whole.features[f];
    SparseFeature& to = part.features[f];
    const int64_t base = from.offsets[begin];
    copy_range(from.offsets, begin, end + 1, to.offsets);
    for (int64_t& offset : to.offsets) offset -= base;
    copy_range(from.rows, base, from.offsets[end], to.rows);
    copy_range(from.weights, base, from.offsets[end], to.weights);
    to.one_each = from.one_each;
  }
}

void copy_samples(const RowKeys& whole, int64_t begin, int64_t end, RowKeys& part) {
  copy_range(whole.files, begin, end, part.files);
  copy_range(whole.numbers, begin, end, part.numbers);
  copy_range(whole.cells, begin, end, part.cells);
}

}  // namespace recmill::train
