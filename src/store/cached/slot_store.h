// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "lookahead_plan/cache_size.h"
#include "lookahead_plan/slot_tables.h"
#include "schema/table_spec.h"
#include "store/cached/row_records.h"
#include "store/cached/slot_states.h"
#include "store/embedding_store.h"

namespace recmill::store {

/// The slots of a cache of one rank, in the memory of a CPU or of a GPU, and the store whose rows
/// they are. Steps are those of the stream. Training calls what is for it on one thread, a mover
/// the rest on another; slots that both name at a time are disjoint by plan.
class SlotStore {
 public:
  virtual ~SlotStore() = default;

  /// Of Slots::inner_model(). Its rows are read and written through here alone.
  virtual EmbeddingStore& store() = 0;
  virtual SlotStates& states() = 0;

  // For training:
  /// Before lookups of a step are enqueued, whose rows fill() has put in.
  virtual Status begin(int64_t step) = 0;
  /// Once all of the step is enqueued.
  virtual Status end(int64_t step) = 0;

  // For the mover; rows ascend, and what is passed is the caller's again when a call returns:
  /// Puts in what comes for a step. Lookups that begin() the step see it.
  virtual Status fill(int64_t step, std::span<const RowInSlot> rows, const RowRecords& records) = 0;
  /// Returns when a step that end() was told of is over.
  virtual Status wait_for_end(int64_t step) = 0;
  /// Copies rows out that no step under way uses.
  virtual Status read(std::span<const RowInSlot> rows, RowRecords& records) = 0;
  /// Replaces rows while no step is under way.
  virtual Status write(std::span<const RowInSlot> rows, const RowRecords& records) = 0;
};

/// Makes slots of a size for rows of a model, whose tables outlive them.
using MakeSlots = std::function<Result<std::unique_ptr<SlotStore>>(
    const ModelSpec& model, const SlotTables& tables, const CacheSize& size)>;

}  // namespace recmill::store
