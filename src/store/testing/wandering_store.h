// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "placement_plan/placement_plan.h"
#include "store/placed/placed_store.h"
#include "store/testing/forwarding_store.h"

namespace recmill::store::testing {

/// A placed store that goes from plan to plan, again and again; prepare() waits so that it is at
/// most kAhead iterations ahead.
class WanderingStore final : public ForwardingStore {
 public:
  static constexpr int64_t kAhead = 2;

  /// `next_plan`: by the iteration that comes next when it is asked for; the same on all ranks.
  WanderingStore(ModelSpec model, int ranks, std::unique_ptr<PlacedStore> placed,
                 std::function<PlacementPlan(int64_t iteration)> next_plan)
      : ForwardingStore(std::move(placed)),
        model_(std::move(model)),
        ranks_(ranks),
        next_plan_(std::move(next_plan)) {}

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override {
    {
      std::unique_lock lock(mutex_);
      went_on_.wait(lock, [&] { return ended_ || batch.iteration <= iteration_ + kAhead; });
    }
    return inner().prepare(batch);
  }
  Status lookup(Prepared& prepared, Output output, Stream& stream) override {
    return until_it_fails(inner().lookup(prepared, output, stream));
  }
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override {
    RECMILL_RETURN_IF_ERROR(until_it_fails(inner().update(updates, step, stream)));
    std::lock_guard lock(mutex_);
    iteration_ = step.iteration + 1;
    auto& placed = static_cast<PlacedStore&>(inner());
    if (!placed.is_moving()) {
      RECMILL_ASSIGN_OR_RETURN(
          auto coming, table::PlacedTables::create(next_plan_(iteration_), model_.tables, ranks_));
      RECMILL_RETURN_IF_ERROR(placed.place_from(iteration_ + kAhead + 1, std::move(coming)));
    }
    went_on_.notify_all();
    return {};
  }

 private:
  Status until_it_fails(Status status) {
    if (status.ok()) return status;
    std::lock_guard lock(mutex_);
    ended_ = true;
    went_on_.notify_all();
    return status;
  }

  const ModelSpec model_;
  const int ranks_;
  const std::function<PlacementPlan(int64_t iteration)> next_plan_;
  std::mutex mutex_;
  std::condition_variable went_on_;
  int64_t iteration_ = 0;  // the next one to be trained; guarded by mutex_
  bool ended_ = false;     // guarded by mutex_
};

}  // namespace recmill::store::testing
