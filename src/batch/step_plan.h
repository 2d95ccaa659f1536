// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace recmill {

struct CacheSize;      // lookahead_plan/
struct LookaheadStep;  // lookahead_plan/
struct RankStep;       // lookahead_plan/

/// What was decided for one batch before a store prepares it: the same on every rank, but for its
/// own part of a cache, whatever the machine. A value: who decides fills it, who carries it out
/// knows no decider.
struct StepPlan {
  int64_t step = 0;  // place in the stream, evaluation batches included, from 0; batches of one
                     // iteration that are updated together are one step
  int64_t iteration = 0;  // of training: that of the batch, or the one that comes next
  bool all_hot = false;   // every lookup of every rank's part is of a row of the run's hot set
  // What a cached store does around the step, of one rank or of this rank of several, and how large
  // it is; null: nobody looks ahead.
  std::shared_ptr<const LookaheadStep> lookahead = nullptr;
  std::shared_ptr<const RankStep> of_rank = nullptr;
  std::shared_ptr<const CacheSize> cache = nullptr;
  bool operator==(const StepPlan&) const = default;
};

/// "step 12, iteration 9".
inline std::string to_string(const StepPlan& plan) {
  return "step " + std::to_string(plan.step) + ", iteration " + std::to_string(plan.iteration);
}

}  // namespace recmill
