// SPDX-License-Identifier: Apache-2.0
// Send-based pooling (OPER, section 8): the owners of a bag's rows pool them, and each sends one
// row for it instead of the rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batch/distinct_rows.h"
#include "comm/batched_fetch.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "store/embedding_store.h"
#include "store/exchange/pooled_parts.h"

namespace recmill::store {

/// A bag is the sum of its lookups of rows with copies, as they are fetched, then of the owners'
/// parts in the order of ranks; each part begins from +0. A mean divides once, at the rank whose
/// bag it is, by all of its lookups. A bag of one lookup has the bits of the contract; others are
/// added in another order than that of positions, always the same one for a plan.
class PooledFetch {
 public:
  /// `tables`: this rank's shares. All referenced objects outlive this.
  PooledFetch(Communicator& communicator, const std::vector<table::EmbeddingTable>& tables,
              const ModelSpec& model, PooledFeatures features, ThreadPool& pool);

  /// Of a feature of the model, among the pooled ones; -1: it is none.
  int index_of(size_t feature) const { return index_[feature]; }

  /// What is wanted of a batch whose own slices begin at samples `begins`. Any thread.
  void plan(const SparseBatch& sparse, std::span<const int64_t> begins, WantedParts& wanted) const;

  /// Of the lookups that plan() has left to a table of features `features_of`: a mean is one of the
  /// whole bag.
  void set_means(const SparseBatch& sparse, std::span<const size_t> features_of,
                 DistinctRows& distinct) const;

  /// Collective. Adds the owners' parts to `output` [features of the model], where the rows that
  /// were fetched are summed already. `asked` [ranks][pooled features]: what the others wanted of
  /// this rank, whose gradients will come.
  Status fetch(const SparseBatch& sparse, const WantedParts& wanted, Output output,
               std::vector<std::vector<AskedBags>>& asked);

 private:
  const table::EmbeddingTable& table_of(size_t feature) const {
    return tables_[model_.features[features_[feature]].table];
  }
  void pool_asked(std::span<const std::vector<AskedBags>> asked);
  Status bring(const WantedParts& wanted);
  void add_parts(size_t feature, const WantedParts& wanted, const FeatureOutput& output) const;
  void divide(size_t feature, const SparseBatch& sparse, const FeatureOutput& output) const;

  Communicator& communicator_;
  const std::vector<table::EmbeddingTable>& tables_;
  const ModelSpec& model_;
  const PooledFeatures features_;
  std::vector<int> index_;  // [features of the model]
  ThreadPool& pool_;
  BatchedFetch requests_;
  std::vector<std::vector<float>> replies_;  // [ranks]: feature after feature [bags][own columns]
  std::vector<std::vector<float>> parts_;    // [ranks], as they came: [bags][the rank's columns]
  std::vector<std::vector<const float*>> begins_;  // [ranks][features], into parts_
};

}  // namespace recmill::store
