// SPDX-License-Identifier: Apache-2.0
// When ranks move rows between slots and homes, as a state machine without threads, clocks and
// rows.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "lookahead_plan/rank_step.h"

namespace recmill::store {

/// What rounds and training wait for. Tests take one after the other away, to see that each is
/// needed.
struct RoundWaits {
  bool round_for_end = true;   // of the step
  bool step_for_first = true;  // the first round after the step before
  bool step_for_rest = true;   // and the rest of the one before that, or with P = 0 of that one
};

/// Is told of plans and of steps that are over, and says which round is next. Every rank takes part
/// in every round, and all come to the same order, since rounds follow from steps alone: those
/// before a step that begins (RankStep::begins), and of each step that is over the first round, where there is one, and the rest.
class Rounds {
 public:
  using Plan = std::shared_ptr<const RankStep>;
  enum class Kind { before, critical, rest };
  struct Round {
    Kind kind = Kind::before;
    Plan plan;
  };

  explicit Rounds(const RoundWaits& waits = {}) : waits_(waits) {}

  /// Of the next step.
  void plan(Plan plan);
  /// Step 0 is awaited, so that what is before it may come. `prefetch`: P.
  void begin(int64_t prefetch);
  /// Its update, or its lookups where it has none, are over.
  void done(int64_t step) { done_ = step; }

  std::optional<Round> next() const;
  void carried_out(const Round& round);

  /// All rows of the step are in their slots.
  bool is_ready(int64_t step) const;
  /// Of a step whose rounds are not over; null: there is none yet.
  Plan planned(int64_t step) const {
    const auto at = static_cast<size_t>(step - first_);
    return at < plans_.size() ? plans_[at] : nullptr;
  }
  /// The last step whose rounds are over; -1 after the one before step 0, and less before that.
  int64_t over() const { return rest_; }

 private:
  static constexpr int64_t kNone = -2;
  const RoundWaits waits_;
  bool has_begun_ = false;
  bool rest_is_needed_ = false;  // by the next step: P = 0
  bool awaits_beginning(int64_t step) const;
  int64_t done_ = -1, critical_ = -1, rest_ = kNone;
  int64_t began_ = -1;  // the last step whose round before it is over
  int64_t first_ = 0;  // step of plans_.front()
  std::deque<Plan> plans_;
};

}  // namespace recmill::store
