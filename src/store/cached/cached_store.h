// SPDX-License-Identifier: Apache-2.0
// Rows are stored at a home, and are in slots while steps to come use them (BagPipe).
//
// A slot is a row of an inner store (SlotStore), which has the same tables: those of one record
// shape and the same optimizer share their slots. prepare() replaces rows by slots, as the step's
// plan says; the inner store looks up, sums and updates. A mover brings rows and takes them away
// beside training.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lookahead_plan/slot_tables.h"
#include "store/cached/cached_batches.h"
#include "store/cached/home_calls.h"
#include "store/cached/home_cuts.h"
#include "store/cached/mover_thread.h"
#include "store/cached/outside_lookups.h"
#include "store/cached/slot_batches.h"
#include "store/cached/slot_store.h"
#include "store/embedding_store.h"
#include "table/row_record.h"

namespace recmill::store {

/// One rank. Batches of the stream need a StepPlan with a LookaheadStep. Others are looked up in
/// what the home has, once it has all that was updated, into memory of their own.
class CachedStore final : public EmbeddingStore, public HomeCuts {
 public:
  /// `home` has all rows of the model. `make_slots` is called once, with what the first plan says.
  CachedStore(ModelSpec model, uint64_t seed, const CacheHomeRows& home, ThreadPool& pool,
              MakeSlots make_slots);
  ~CachedStore() override;

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

  static const Batch& batch_of(Prepared& prepared);
  /// Whether no plan has the batch: its output is the host's.
  static bool is_outside(Prepared& prepared);

 private:
  Status begin_step(const StepPlan& plan);
  Status prepare_in_slots(const Batch& batch, CachedBatch& work);
  Status end_step(int64_t step);
  Result<std::vector<RowInSlot>> take_changed();
  Status bring_home();
  Status write_some(const RowBlock& block, int64_t begin, int64_t end);

  const ModelSpec model_;
  const SlotTables tables_;
  const uint64_t seed_;
  const std::vector<table::RowRecord> records_;  // [tables]
  ThreadPool& pool_;
  const MakeSlots make_slots_;

  std::unique_ptr<SlotStore> slots_;  // null before the first plan
  std::atomic<bool> is_open_{false};  // they are there; any thread
  std::atomic<int64_t> ended_{-1};    // the last step that is over, or enqueued to its end
  CachedBatches batches_;
  std::shared_ptr<const LookaheadStep> last_;  // step that was prepared
  SlotBatches slot_batches_;                   // of last_, whose uses it reads
  OutsideLookups outside_;
  MoverThread mover_;  // last: ends before what it uses
};

}  // namespace recmill::store
