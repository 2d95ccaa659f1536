// SPDX-License-Identifier: Apache-2.0
// The store of several ranks: each has shares of tables, and maybe copies of others' rows.
//
// prepare() works on this rank's ids alone and sends nothing, so that it can never wait for a
// lookup or an update of another rank. lookup() asks each rank for the rows that this one does not
// hold, by slot (RowFetch), and pools here, in the contract's order; features whose rows all are
// here pool straight from their tables. Where ranks share rows (HostRows), all features do, between
// two fences. update() sends each distinct row's sums over this rank's largest subtrees of slices
// to who holds the row (RowUpdates). The rows have to be distinct to be fetched, so that a schedule
// that does without finding them would save nothing: sums go by distinct rows whatever the schedule
// says, with the fetch distance of a schedule of "distinct_rows". One communicator serves both, so
// that lookups are one after the other. Tables whose owners pool (PooledFetch) go this way with
// their lookups of rows with copies alone.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/distinct_rows/distinct_rows.h"
#include "store/embedding_store.h"
#include "store/exchange/pooled_fetch.h"
#include "store/exchange/pooled_gradients.h"
#include "store/exchange/row_fetch.h"
#include "store/sharded/host_rows.h"
#include "store/sharded/row_updates.h"
#include "store/sharded/sharded_options.h"
#include "store/tables/prepared_batches.h"
#include "store/tables/rank_tables.h"

namespace recmill::store {

class ShardedStore final : public EmbeddingStore {
 public:
  /// `host`: the rows of `tables` that ranks share, or null. The communicator outlives the store.
  /// Of `owners_pool` [tables], or empty, owners pool the rows that have no copies, and send one
  /// row a bag (PooledFetch): lookups of another order of summation. All of their features are
  /// pooled.
  ShardedStore(std::unique_ptr<RankTables> tables, std::unique_ptr<HostRows> host,
               Communicator& communicator, ShardedOptions options,
               const std::vector<bool>& owners_pool = {});
  ~ShardedStore() override;

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override;
  /// The same where rows of other ranks come unasked (RowFetch): `rows` of this batch and maybe of
  /// others that are looked up before the next `rows`.
  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch,
                                            std::shared_ptr<const UnaskedRows> rows);
  Status lookup(Prepared& prepared, Output output, Stream& stream) override;
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override;
  Status settle() override { return {}; }
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) override {
    return of_->snapshots.take(kept_bytes);
  }
  table::Extent extent(int table) const override { return of_->tables[table].extent(); }
  Status write_rows(const RowBlock& block) override;
  StoreStats stats() const override { return of_->stats(); }

 private:
  struct Work;
  using Batches = PreparedBatches<Work>;

  void let_owners_pool(const std::vector<bool>& tables, Communicator& communicator);
  kernels::FeatureBags fetched_bags(size_t feature, const SparseBatch& sparse,
                                    const Work& work) const;
  Status see_who_asks(const Batch& batch, Work& work) const;
  Status tell_notes(std::span<const Update> updates);
  void fill_pool_tasks(const SparseBatch& sparse, Work& work) const;
  void find_distinct(const Batch& batch, Work& work);
  bool shares(size_t table) const { return host_ != nullptr && host_->has(table); }
  const kernels::RowStorage& rows(size_t table) const;
  void find_shared(size_t table, Work& work) const;
  void find_sources(size_t table, Work& work) const;
  Result<std::vector<kernels::RowStorage>> fetch(Work& work, int64_t note);
  void pool_rows(const Work& work, std::span<const kernels::RowStorage> fetched,
                 Output output) const;
  static std::vector<PooledUpdate> pooled_of(std::span<const Update> updates);

  const std::unique_ptr<HostRows> host_;  // null: ranks share no rows
  const std::unique_ptr<RankTables> of_;
  const int rank_, ranks_;
  const bool dedup_fetch_, hot_rows_everywhere_;
  Communicator& communicator_;
  std::shared_ptr<const UnaskedRows> came_;  // of the last lookup
  std::vector<RowFetch> fetches_;  // of all tables, or one a table; none where ranks share all rows
  RowUpdates updates_;
  std::unique_ptr<PooledFetch> pooled_fetch_;          // null: no table's owners pool
  std::unique_ptr<PooledGradients> pooled_gradients_;  // beside

  std::mutex prepare_mutex_;
  kernels::DistinctRowsFinder finder_;  // guarded by prepare_mutex_
  Batches batches_;
};

}  // namespace recmill::store
