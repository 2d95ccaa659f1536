// SPDX-License-Identifier: Apache-2.0
// The store whose rows all stand in the memory of the ranks that train: one rank holds them all, or
// every rank holds the shares that table::shares_of() gives it.
//
// One rank: lookup() pools straight from the tables; update() sums and applies in one pass over the
// rows that are named. How, a schedule says for each table (kernels/row_update): prepare() finds
// the distinct rows of those tables whose schedule needs them.
//
// Several ranks: prepare() works on this rank's ids alone and sends nothing, so that it can never
// wait for a lookup or an update of another rank. lookup() asks each owner for each distinct row,
// or for its columns of it, once (BatchedFetch, by slot) and pools here, in the contract's order.
// update() sends the owners each distinct row's sums over this rank's largest subtrees of shards;
// they finish the tree and apply the optimizer once. The rows have to be distinct to be fetched, so
// that a schedule that does without finding them would save nothing: sums go by distinct rows
// whatever the schedule says, with the fetch distance of a schedule of "distinct_rows". One
// communicator serves both; lookups of evaluation batches may run at the same time only with one
// rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "device/pool.h"
#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/embedding_pool/fused_pool.h"
#include "store/embedding_store.h"
#include "store/row_exchange.h"
#include "store/table_snapshots.h"
#include "table/embedding_table.h"
#include "table/table_update.h"

namespace recmill::store {

/// Which kernels a store runs. Empty lists: the defaults.
struct StoreKernels {
  std::vector<kernels::PoolKernel> pool;  // [features]
  int64_t tile = kernels::kWholeFeature;  // samples of a feature in one task, at most
  std::vector<kernels::RowUpdateKernel> row_update = {};  // [tables]; of frozen ones not used
  int64_t update_floats = table::kTaskFloats;             // table::TableUpdater's task_floats
  std::shared_ptr<const kernels::PoolCode> code = {};     // made for `pool`; null: none
};

class LocalStore final : public EmbeddingStore {
 public:
  /// Allocates this rank's share of all tables with their initial rows. Fails as
  /// table::EmbeddingTable::create. The communicator and the pool outlive the store. Without
  /// kernels.row_update each batch takes kernels::default_row_update; several ranks sum by distinct
  /// rows, whatever it says.
  static Result<std::unique_ptr<LocalStore>> create(ModelSpec model, uint64_t seed,
                                                    Communicator& communicator, Pool& pool,
                                                    StoreKernels kernels = {});

  ~LocalStore() override;

  /// One device a rank: as many as `cluster` has.
  MemoryLedger need(const ModelSpec& model, const ClusterSpec& cluster) const override;
  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override;
  Status lookup(Prepared& prepared, Output output, Stream& stream) override;
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override;
  Status settle() override { return {}; }
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) override {
    return snapshots_.take(kept_bytes);
  }
  table::Extent extent(int table) const override { return tables_[table].extent(); }
  Status write_rows(const RowBlock& block) override;
  StoreStats stats() const override;

 private:
  struct Work;
  class LocalPrepared;

  LocalStore(ModelSpec model, std::vector<table::EmbeddingTable> tables, Communicator& communicator,
             Pool& pool, StoreKernels kernels);
  void fill_pool_tasks(const SparseBatch& sparse, std::vector<kernels::PoolTask>& tasks) const;
  const kernels::RowUpdateKernel& kernel_of(size_t table, const Batch& batch) const;
  void find_distinct(const Batch& batch, Work& work);
  static void set_outputs(Output output, std::span<kernels::PoolTask> tasks);
  Status lookup_remote(const Work& work, Output output);
  static const Batch& batch_of(const Update& update);  // CHECKs that it is one of training
  static const kernels::RowUpdateKernel* kernel_of(size_t table, std::span<const Update> updates);
  Status update_remote(std::span<const Update> updates, const table::RowStep& step);
  std::vector<const DistinctRows*> distinct_of(std::span<const Update> updates,
                                               std::vector<DistinctRows>& merged) const;
  std::vector<std::vector<kernels::GradientRows>> gradients_of(
      std::span<const Update> updates) const;
  std::vector<kernels::BagGradients> bags_of(size_t table, std::span<const Update> updates) const;

  const ModelSpec model_;
  std::vector<std::vector<size_t>> features_of_;  // by table: its features, ascending
  std::vector<table::EmbeddingTable> tables_;
  kernels::FusedPool fused_pool_;
  const std::vector<kernels::RowUpdateKernel> row_update_;  // [tables] or empty
  TableSnapshots snapshots_;
  table::TableUpdater updater_;
  Pool& pool_;
  const int rank_, ranks_;
  RowExchange exchange_;  // several ranks

  std::mutex prepare_mutex_;
  kernels::DistinctRowsFinder finder_;  // guarded by prepare_mutex_
  std::vector<std::unique_ptr<Work>>
      resting_;  // guarded by prepare_mutex_: memory to be used again

  std::atomic<int64_t> lookups_{0}, distinct_rows_{0}, updated_rows_{0};
};

}  // namespace recmill::store
