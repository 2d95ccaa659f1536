// SPDX-License-Identifier: Apache-2.0
// Gradients of bags that owners have pooled (PooledFetch): each owner of a part gets the bag's
// gradient once, without ids, and finds the gradients of its rows by itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "kernels/distinct_rows/distinct_rows.h"
#include "store/embedding_store.h"
#include "store/exchange/gradient_exchange.h"
#include "store/exchange/pooled_parts.h"

namespace recmill::store {

/// One batch of an update, as PooledFetch has left it.
struct PooledUpdate {
  const SparseBatch* sparse = nullptr;
  const WantedParts* wanted = nullptr;
  std::span<const std::vector<AskedBags>> asked;  // [ranks][pooled features]
  Gradient gradient;
};

class PooledGradients {
 public:
  /// `tables`: this rank's shares. All referenced objects outlive this.
  PooledGradients(Communicator& communicator, const std::vector<table::EmbeddingTable>& tables,
                  const ModelSpec& model, PooledFeatures features, ThreadPool& pool);

  /// Collective. The sums over all ranks, in the order of the contract, of the rows that this rank
  /// has pooled [tables], valid until the next call; of frozen tables none.
  Result<std::vector<TableSums>> exchange(std::span<const PooledUpdate> updates, int slices);

 private:
  const table::EmbeddingTable& table_of(size_t feature) const {
    return tables_[model_.features[features_[feature]].table];
  }
  void fill(std::span<const PooledUpdate> updates, int rank);
  void append(const PooledUpdate& update, size_t feature, int rank);
  Status bring(std::span<const PooledUpdate> updates);
  void find_rows(std::span<const PooledUpdate> updates, int slices);
  void collect(std::span<const PooledUpdate> updates, int rank, int slice);
  int64_t even_out();
  void sum(size_t pooled, int slices);

  /// What one table's rows are summed from: its features by slice and update.
  struct Table {
    size_t table = 0;
    size_t features = 0;
    std::vector<kernels::FeatureBags> bags;
    std::vector<kernels::GradientRows> gradients;  // beside bags
    std::vector<float> sums;                       // [distinct rows][own columns]
    std::vector<int64_t> begins;
    std::vector<kernels::GradientPart> parts;
  };

  Communicator& communicator_;
  const std::vector<table::EmbeddingTable>& tables_;
  const ModelSpec& model_;
  const PooledFeatures features_;
  ThreadPool& pool_;
  std::vector<std::vector<float>> outgoing_;   // [ranks]: by update and feature [bags][its columns]
  std::vector<std::vector<float>> incoming_;   // [ranks]: likewise [bags][own columns]
  std::vector<std::vector<int64_t>> offsets_;  // of Table::bags, all as many
  kernels::DistinctRowsFinder finder_;
  std::vector<size_t> table_index_;     // [pooled features], into pooled_
  std::vector<Table> pooled_;           // tables that are not frozen
  std::vector<DistinctRows> distinct_;  // beside
};

}  // namespace recmill::store
