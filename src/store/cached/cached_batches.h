// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "batch/sparse_batch.h"
#include "batch/step_plan.h"
#include "store/cached/outside_lookups.h"
#include "store/embedding_store.h"
#include "store/tables/prepared_batches.h"

namespace recmill::store {

/// What a cached store has prepared of a batch: its rows in slots, as its plan says, for the inner
/// store; or, of one outside the stream, its distinct rows.
struct CachedBatch {
  std::shared_ptr<const StepPlan> plan;  // null: outside the stream
  SparseBatch in_slots;
  std::unique_ptr<Prepared> inner;
  std::vector<DistinctRows> distinct;  // [tables], of a batch outside the stream
};

class CachedBatches : public PreparedBatches<CachedBatch> {
 public:
  /// Where a cache `plans` the batch, in_slots(batch, CachedBatch&) prepares it; else it is looked
  /// up outside the stream, and not trained.
  template <class InSlots>
  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch, bool plans, OutsideLookups& outside,
                                            const InSlots& in_slots) {
    auto work = take();
    if (plans) {
      work->plan = batch.plan;
      RECMILL_RETURN_IF_ERROR(in_slots(batch, *work));
    } else if (batch.purpose == Purpose::train) {
      return Status::Failed("a batch of iteration " + std::to_string(batch.iteration) +
                            " has no plan of what its cache does");
    } else {
      work->plan = nullptr;
      outside.prepare(batch, work->distinct);
    }
    return prepared(batch, std::move(work));
  }

  static const StepPlan& plan_of(const Update& update) { return *work_of(update).plan; }
  /// Those of the inner store.
  static std::vector<Update> inner_updates(std::span<const Update> updates) {
    std::vector<Update> inner;
    for (const Update& update : updates)
      inner.push_back({work_of(update).inner.get(), update.gradient});
    return inner;
  }
};

/// Steps are planned one after the other: `last` is the step before, or -1.
inline Status check_next_step(int64_t step, int64_t last) {
  if (step == last + 1) return {};
  return Status::Failed("a batch has the plan of step " + std::to_string(step) + ", and step " +
                        std::to_string(last + 1) + " is the next");
}

}  // namespace recmill::store
