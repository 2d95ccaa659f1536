// SPDX-License-Identifier: Apache-2.0
// The cache of several ranks (BagPipe, section 3.3): rows are stored at the ranks, each at its
// home, and are in slots of the ranks that plans say while steps to come use them.
//
// The slots of all ranks are the rows of an inner store, a ShardedStore: first those of each rank,
// rank after rank, then those that all ranks have. prepare() replaces rows by them. Between steps
// rows go from slot to slot, from homes and to homes, in rounds beside training.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "lookahead_plan/cache_size.h"
#include "lookahead_plan/rank_step.h"
#include "schema/cluster_spec.h"
#include "store/cached/cached_batches.h"
#include "store/cached/home_calls.h"
#include "store/cached/home_cuts.h"
#include "store/cached/outside_lookups.h"
#include "store/cached/ranks/home_ranks.h"
#include "store/cached/ranks/round_thread.h"
#include "store/cached/ranks/rows_at_homes.h"
#include "store/cached/slot_batches.h"
#include "store/cached/slots.h"
#include "store/embedding_store.h"
#include "store/sharded/host_rows.h"
#include "store/sharded/sharded_options.h"
#include "store/sharded/sharded_store.h"
#include "store/tables/rank_tables.h"

namespace recmill::store {

/// Batches of the stream need a StepPlan with a RankStep. Others are looked up, by all ranks
/// together, in what the homes have, once these have all that was updated.
class ShardedCachedStore final : public EmbeddingStore, public HomeCuts {
 public:
  /// Collective. `home` has the rows that HomeRanks says, or all. The communicator outlives the
  /// store.
  static Result<std::unique_ptr<ShardedCachedStore>> create(
      ModelSpec model, uint64_t seed, const CacheHomeRows& home, Communicator& communicator,
      ThreadPool& pool, ShardedOptions options = {}, StoreKernels kernels = {});
  ~ShardedCachedStore() override;

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override;
  Status lookup(Prepared& prepared, Output output, Stream& stream) override;
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override;
  Status settle() override;
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) override;
  Result<ComingImage> cut() override;
  table::Extent extent(int table) const override {
    return {{0, model_.tables[table].rows}, {0, model_.tables[table].dim}};
  }
  Status write_rows(const RowBlock& block) override;
  StoreStats stats() const override;

 private:
  ShardedCachedStore(ModelSpec model, uint64_t seed, const CacheHomeRows& home,
                     Communicator& communicator, std::unique_ptr<Communicator> beside,
                     ThreadPool& pool, ShardedOptions options, StoreKernels kernels);
  Status open(const CacheSize& size);
  Status allocate();
  Status begin_step(const StepPlan& plan);
  RowInSlot in_inner(const RowInSlot& row) const;
  /// What has come early of a step that is prepared later, and its plan.
  struct Early {
    std::shared_ptr<const RankStep> with;  // the step whose rounds bring it: two before
    std::shared_ptr<EarlyRows> rows;
  };
  std::shared_ptr<EarlyRows> early_rows(const RankStep& step) const;
  std::shared_ptr<const UnaskedRows> unasked_rows(const RankStep& step, const Early& early) const;
  Status prepare_in_slots(const Batch& batch, CachedBatch& work);
  void count_lookups(const RankStep& step);
  void count_sums(const RankStep& step);
  std::vector<RowInSlot> take_changed();
  Status bring_home(std::span<const RowInSlot> changed);
  Status write_some(const RowBlock& block, int64_t begin, int64_t end);

  const ModelSpec model_;
  const HomeRanks homes_;
  const uint64_t seed_;
  const bool is_shared_;                         // the home
  const std::vector<table::RowRecord> records_;  // [tables]
  Communicator& communicator_;                   // of the inner store
  const std::unique_ptr<Communicator> beside_;   // of the rounds
  ThreadPool& pool_;
  const ShardedOptions options_;
  const StoreKernels kernels_;

  // Null before the first plan:
  CacheSize size_;
  HostRows* host_ = nullptr;  // of inner_; null: ranks share no memory
  RankTables* of_ = nullptr;  // of inner_
  std::unique_ptr<ShardedStore> inner_;
  std::unique_ptr<Slots> slots_;      // of inner_
  std::atomic<bool> is_open_{false};  // all are there
  // Shared while batches are prepared, exclusive while rows get their room.
  std::shared_mutex preparing_;
  bool has_rows_ = false;   // allocate() was called
  int64_t looked_up_ = -1;  // step of the last lookup
  CachedBatches batches_;
  std::shared_ptr<const RankStep> last_;        // step that was prepared
  std::vector<RowInSlot> inner_uses_;           // of last_
  std::shared_ptr<const UnaskedRows> unasked_;  // of last_; null where ranks share rows
  std::deque<Early> early_;                     // of last_, and what comes with it and before it
  SlotBatches slot_batches_;                    // of last_
  OutsideLookups outside_;
  // Rows that crossed ranks: sums of lookups here, and weights.
  std::atomic<int64_t> gradients_{0}, weights_{0};
  RoundThread rounds_;  // ends before what it uses
  RowsAtHomes at_homes_;
};

}  // namespace recmill::store
