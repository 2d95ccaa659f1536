// SPDX-License-Identifier: Apache-2.0
#include "store/batch_check.h"

#include <string>

namespace recmill::store {
namespace {

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

}  // namespace

Status check_batch(const ModelSpec& model, const Batch& batch) {
  RECMILL_CHECK(batch.sparse != nullptr);
  const SparseBatch& sparse = *batch.sparse;
  RECMILL_CHECK(
      sparse.samples == batch.cut.begin(batch.end_shard) - batch.cut.begin(batch.first_shard),
      std::to_string(sparse.samples));
  RECMILL_CHECK(sparse.features.size() == model.features.size(),
                std::to_string(sparse.features.size()));
  for (size_t feature = 0; feature < model.features.size(); ++feature) {
    if (feature + kCountsAhead < sparse.features.size())
      sparse.features[feature + kCountsAhead].view(sparse.samples).fetch_counts();
    const SparseFeature& bags = sparse.features[feature];
    const std::string& name = model.features[feature].name;
    RECMILL_CHECK(static_cast<int64_t>(bags.offsets.size()) >= sparse.samples + 1, name);
    const int64_t begin = bags.offsets[0], end = bags.offsets[sparse.samples];
    RECMILL_CHECK(end <= static_cast<int64_t>(bags.rows.size()), name);
    RECMILL_CHECK(bags.weights.empty() || bags.weights.size() == bags.rows.size(), name);
    const auto limit = static_cast<uint64_t>(model.tables[model.features[feature].table].rows);
    bool outside = false;
    for (int64_t i = begin; i < end; ++i) {
      outside |= static_cast<uint64_t>(bags.rows[i]) >= limit;  // negative ones too
    }
    if (outside) return row_outside(model, sparse, feature);
  }
  return {};
}

}  // namespace recmill::store
