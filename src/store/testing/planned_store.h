// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "store/testing/forwarding_store.h"

namespace recmill::store::testing {

/// A store that cannot do without plans: it refuses a training batch that has none, and any whose
/// plan is of another iteration or of another step than what follows the batch before. Batches of
/// one iteration that are updated together are one step.
class PlannedStore final : public ForwardingStore {
 public:
  explicit PlannedStore(std::unique_ptr<EmbeddingStore> inner)
      : ForwardingStore(std::move(inner)) {}

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override {
    const std::string at = "a batch of iteration " + std::to_string(batch.iteration);
    if (batch.plan == nullptr) {
      if (batch.purpose == Purpose::train) return Status::Failed(at + " has no plan");
      return inner().prepare(batch);  // outside the stream, from any thread
    }
    const StepPlan& plan = *batch.plan;
    const bool follows = !last_ ? plan.step == 0 : plan.step == last_->step + 1;
    const bool together = batch.purpose == Purpose::train && trains_ && plan == last_;
    if (plan.iteration != batch.iteration || !(follows || together))
      return Status::Failed(at + " has the plan of " + to_string(plan) + ", after " +
                            (last_ ? to_string(*last_) : "none"));
    last_ = plan;
    trains_ = batch.purpose == Purpose::train;
    return inner().prepare(batch);
  }

  /// Steps of the stream that were prepared.
  int64_t steps() const { return last_ ? last_->step + 1 : 0; }

 private:
  // Of the batch before, in the stream:
  std::optional<StepPlan> last_;
  bool trains_ = false;
};

}  // namespace recmill::store::testing
