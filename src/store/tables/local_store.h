// SPDX-License-Identifier: Apache-2.0
// The store of one rank, which has all rows.
//
// lookup() pools straight from the tables. update() sums and applies in one pass over the rows that
// are named. How, a schedule says for each table (kernels/row_update): prepare() finds the distinct
// rows of those tables whose schedule needs them. Lookups may run beside each other.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/distinct_rows/distinct_rows.h"
#include "store/embedding_store.h"
#include "store/tables/prepared_batches.h"
#include "store/tables/rank_tables.h"
#include "table/table_update.h"

namespace recmill::store {

class LocalStore final : public EmbeddingStore {
 public:
  /// Whole tables. Without row_update each batch takes kernels::default_row_update.
  explicit LocalStore(std::unique_ptr<RankTables> tables);
  ~LocalStore() override;

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override;
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

  const kernels::RowUpdateKernel& kernel_of(size_t table, const Batch& batch) const;
  void find_distinct(const Batch& batch, Work& work);
  static const kernels::RowUpdateKernel* kernel_of(size_t table, std::span<const Update> updates);
  std::vector<kernels::BagGradients> bags_of(size_t table, std::span<const Update> updates) const;

  const std::unique_ptr<RankTables> of_;
  table::TableUpdater updater_;
  std::mutex prepare_mutex_;
  kernels::DistinctRowsFinder finder_;  // guarded by prepare_mutex_
  Batches batches_;
};

}  // namespace recmill::store
