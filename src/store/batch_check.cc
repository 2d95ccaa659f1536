// SPDX-License-Identifier: Apache-2.0
#include "store/batch_check.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace recmill::store {
namespace {

constexpr size_t kPieces = 8;  // of a thread: features differ in their lookups

Status row_outside(const ModelSpec& model, const SparseBatch& batch, size_t feature) {
  const FeatureSpec& spec = model.features[feature];
  const TableSpec& table = model.tables[spec.table];
  const SparseFeature& bags = batch.features[feature];
  for (int64_t sample = 0; sample < batch.samples; ++sample) {
    for (int64_t i = bags.offsets[sample]; i < bags.offsets[sample + 1]; ++i) {
      if (bags.rows[i] >= 0 && bags.rows[i] < table.rows) continue;
      return Status::Failed("feature '" + spec.name + "', sample " +
                            std::to_string(batch.first + sample) + ": row " +
                            std::to_string(bags.rows[i]) + " is outside table '" + table.name +
                            "' of " + std::to_string(table.rows) + " rows");
    }
  }
  return {};
}

/// Of features [begin, end).
Status check_features(const ModelSpec& model, const SparseBatch& sparse, size_t begin, size_t end) {
  for (size_t feature = begin; feature < end; ++feature) {
    if (feature + kCountsAhead < end)
      sparse.features[feature + kCountsAhead].view(sparse.samples).fetch_counts();
    const SparseFeature& bags = sparse.features[feature];
    const std::string& name = model.features[feature].name;
    RECMILL_CHECK(static_cast<int64_t>(bags.offsets.size()) >= sparse.samples + 1, name);
    if (!bags.on_host) {  // whoever made them has looked
      RECMILL_CHECK(sparse.on_gpu != nullptr, model.features[feature].name);
      continue;
    }
    const int64_t first = bags.offsets[0], last = bags.offsets[sparse.samples];
    RECMILL_CHECK(last <= static_cast<int64_t>(bags.rows.size()), name);
    RECMILL_CHECK(bags.weights.empty() || bags.weights.size() == bags.rows.size(), name);
    const auto limit = static_cast<uint64_t>(model.tables[model.features[feature].table].rows);
    uint64_t outside = 0;  // its highest bit: by a negative row, and by one from `limit` on
    for (int64_t i = first; i < last; ++i) {
      const auto row = static_cast<uint64_t>(bags.rows[i]);
      outside |= row | (limit - 1 - row);
    }
    if (outside >> 63 != 0) return row_outside(model, sparse, feature);
  }
  return {};
}

const SparseBatch& checked_shape(const ModelSpec& model, const Batch& batch) {
  RECMILL_CHECK(batch.sparse != nullptr);
  const SparseBatch& sparse = *batch.sparse;
  RECMILL_CHECK(
      sparse.samples == batch.cut.begin(batch.end_slice) - batch.cut.begin(batch.first_slice),
      std::to_string(sparse.samples));
  RECMILL_CHECK(sparse.features.size() == model.features.size(),
                std::to_string(sparse.features.size()));
  return sparse;
}

}  // namespace

Status check_batch(const ModelSpec& model, const Batch& batch) {
  return check_features(model, checked_shape(model, batch), 0, model.features.size());
}

Status check_batch(const ModelSpec& model, const Batch& batch, ThreadPool& pool) {
  return check_rows(model, checked_shape(model, batch), pool);
}

Status check_rows(const ModelSpec& model, const SparseBatch& sparse, ThreadPool& pool) {
  const size_t features = model.features.size();
  const size_t pieces = std::min<size_t>(features, kPieces * pool.threads());
  std::vector<Status> outcomes(pieces);
  pool.run(static_cast<int64_t>(pieces), [&](int64_t piece) {
    const auto at = static_cast<size_t>(piece);
    outcomes[at] =
        check_features(model, sparse, features * at / pieces, features * (at + 1) / pieces);
  });
  for (Status& outcome : outcomes) RECMILL_RETURN_IF_ERROR(std::move(outcome));
  return {};
}

void slice_begins(const Batch& batch, std::vector<int64_t>& begins) {
  begins.clear();
  for (int slice = batch.first_slice; slice <= batch.end_slice; ++slice)
    begins.push_back(batch.cut.begin(slice) - batch.cut.begin(batch.first_slice));
}

}  // namespace recmill::store
