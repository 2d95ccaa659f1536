// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "lookahead_plan/lookahead_step.h"
#include "lookahead_plan/slot_tables.h"
#include "schema/table_spec.h"
#include "store/cached/step_slots.h"

namespace recmill::store {

/// Replaces the rows of batches by slots.
class SlotBatches {
 public:
  /// Both outlive it.
  SlotBatches(const ModelSpec& model, const SlotTables& tables);

  /// The step of the following batches: its distinct rows, ascending, which stay where they are
  /// until the next call.
  void begin(int64_t step, std::span<const RowInSlot> uses, ThreadPool& pool);
  /// Fails on a row that the step does not have.
  Status replace_rows(const SparseBatch& sparse, SparseBatch& in_slots, ThreadPool& pool) const;

 private:
  int64_t replace_rows(const SparseFeature& from, int64_t samples, int table,
                       SparseFeature& to) const;

  const SlotTables& tables_;
  std::vector<std::vector<size_t>> features_of_;  // [tables]
  int64_t step_ = -1;
  StepSlots slots_;  // of step_
};

}  // namespace recmill::store
