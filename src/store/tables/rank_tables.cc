// SPDX-License-Identifier: Apache-2.0
#include "store/tables/rank_tables.h"

#include <utility>

namespace recmill::store {
namespace {

/// Those given, or the defaults where none are.
std::vector<kernels::PoolKernel> pool_kernels(const ModelSpec& model,
                                              std::vector<kernels::PoolKernel> given) {
  RECMILL_CHECK(given.empty() || given.size() == model.features.size());
  given.resize(model.features.size());
  return given;
}

}  // namespace

RankTables::RankTables(ModelSpec of, std::vector<table::EmbeddingTable> shares, ThreadPool& threads,
                       StoreKernels kernels)
    : model(std::move(of)),
      features_of(model.tables.size()),
      tables(std::move(shares)),
      snapshots(tables),
      fused_pool(pool_kernels(model, std::move(kernels.pool)), kernels.tile),
      row_update(std::move(kernels.row_update)),
      update_floats(kernels.update_floats),
      pool(threads) {
  RECMILL_CHECK(tables.size() == model.tables.size());
  RECMILL_CHECK(row_update.empty() || row_update.size() == model.tables.size());
  fused_pool.use(std::move(kernels.code));
  for (size_t f = 0; f < model.features.size(); ++f)
    features_of[model.features[f].table].push_back(f);
}

std::vector<std::vector<kernels::GradientRows>> RankTables::gradients_of(
    std::span<const Update> updates) const {
  std::vector<std::vector<kernels::GradientRows>> result(tables.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    for (const Update& update : updates) {
      for (size_t f : features_of[t])
        result[t].push_back({update.gradient[f].data, update.gradient[f].stride});
    }
  }
  return result;
}

void RankTables::count_lookups(const SparseBatch& sparse) {
  int64_t found = 0;
  for (const SparseFeature& feature : sparse.features)
    found += feature.view(sparse.samples).lookups();
  lookups += found;
}

}  // namespace recmill::store
