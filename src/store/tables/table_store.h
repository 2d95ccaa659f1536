// SPDX-License-Identifier: Apache-2.0
// What stores have in common whose rows all stand in the memory of the ranks that train: one rank
// holds them all, or each holds shares of tables, and maybe copies of others' rows.
//
// One rank: lookup() pools straight from the tables; update() sums and applies in one pass over the
// rows that are named. How, a schedule says for each table (kernels/row_update): prepare() finds
// the distinct rows of those tables whose schedule needs them.
//
// Several ranks: prepare() works on this rank's ids alone and sends nothing, so that it can never
// wait for a lookup or an update of another rank. lookup() asks each rank for the rows that this
// one does not hold, by slot (RowFetch), and pools here, in the contract's order; features whose
// rows all stand here pool straight from their tables. Where ranks share rows (HostRows), all
// features do, between two fences. update() sends each distinct row's sums over this rank's largest
// subtrees of slices to who holds the row (RowUpdates). The rows have to be distinct to be fetched,
// so that a schedule that does without finding them would save nothing: sums go by distinct rows
// whatever the schedule says, with the fetch distance of a schedule of "distinct_rows". One
// communicator serves both; lookups of evaluation batches may run at the same time only with one
// rank. Tables whose owners pool (PooledFetch) go this way with their lookups of rows with copies
// alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/embedding_pool/fused_pool.h"
#include "store/embedding_store.h"
#include "store/exchange/pooled_fetch.h"
#include "store/exchange/pooled_gradients.h"
#include "store/exchange/row_fetch.h"
#include "store/placed/row_migration.h"
#include "store/tables/host_rows.h"
#include "store/tables/row_updates.h"
#include "table/embedding_table.h"
#include "table/table_snapshots.h"
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

class TableStore : public EmbeddingStore {
 public:
  ~TableStore() override;

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

 protected:
  /// `tables`: this rank's shares, and the rows of them that ranks share, or null. The communicator
  /// and the pool outlive the store. Without kernels.row_update each batch takes
  /// kernels::default_row_update; several ranks sum by distinct rows, whatever it says.
  TableStore(ModelSpec model, std::vector<table::EmbeddingTable> tables,
             std::unique_ptr<HostRows> host, Communicator& communicator, ThreadPool& pool,
             StoreKernels kernels, PlacedOptions options);

  HeldRows held() { return {tables_, host_.get()}; }
  /// Whether a snapshot is there that has not been read to its end.
  bool is_being_read() const { return snapshots_.is_being_read(); }

  /// Of these tables [tables] owners pool the rows that have no copies, and send one row a bag
  /// (PooledFetch): lookups of another order of summation. All of their features are pooled. Before
  /// the first batch; with one rank it means nothing.
  void let_owners_pool(const std::vector<bool>& tables, Communicator& communicator);

 private:
  struct Work;
  class TablePrepared;

  kernels::FeatureBags fetched_bags(size_t feature, const SparseBatch& sparse,
                                    const Work& work) const;
  void fill_pool_tasks(const SparseBatch& sparse, Work& work) const;
  const kernels::RowUpdateKernel& kernel_of(size_t table, const Batch& batch) const;
  void find_distinct(const Batch& batch, Work& work);
  bool shares(size_t table) const { return host_ != nullptr && host_->has(table); }
  const kernels::RowStorage& rows(size_t table) const;
  void find_shared(size_t table, Work& work) const;
  void find_sources(size_t table, Work& work) const;
  void point(std::span<kernels::PoolTask> tasks, Output output) const;
  Status lookup_remote(const SparseBatch& sparse, Work& work, Output output);
  static const Work& work_of(const Update& update);
  static const Batch& batch_of(const Update& update);  // CHECKs that it is one of training
  static const kernels::RowUpdateKernel* kernel_of(size_t table, std::span<const Update> updates);
  Status update_remote(std::span<const Update> updates, const table::RowStep& step);
  static std::vector<PooledUpdate> pooled_of(std::span<const Update> updates);
  std::vector<const DistinctRows*> distinct_of(std::span<const Update> updates,
                                               std::vector<DistinctRows>& merged) const;
  std::vector<std::vector<kernels::GradientRows>> gradients_of(
      std::span<const Update> updates) const;
  std::vector<kernels::BagGradients> bags_of(size_t table, std::span<const Update> updates) const;

  const ModelSpec model_;
  std::vector<std::vector<size_t>> features_of_;  // by table: its features, ascending
  const std::unique_ptr<HostRows> host_;          // null: ranks share no rows
  std::vector<table::EmbeddingTable> tables_;
  kernels::FusedPool fused_pool_;
  const std::vector<kernels::RowUpdateKernel> row_update_;  // [tables] or empty
  table::TableSnapshots snapshots_;
  table::TableUpdater updater_;
  ThreadPool& pool_;
  const int rank_, ranks_;
  const bool dedup_fetch_;
  // Several ranks, unless they share all rows: of all tables, or one a table.
  std::vector<RowFetch> fetches_;
  RowUpdates updates_;                                 // several ranks
  std::unique_ptr<PooledFetch> pooled_fetch_;          // null: no table's owners pool
  std::unique_ptr<PooledGradients> pooled_gradients_;  // beside

  std::mutex prepare_mutex_;
  kernels::DistinctRowsFinder finder_;  // guarded by prepare_mutex_
  std::vector<std::unique_ptr<Work>>
      resting_;  // guarded by prepare_mutex_: memory to be used again

  std::atomic<int64_t> lookups_{0}, distinct_rows_{0}, updated_rows_{0};
};

}  // namespace recmill::store
