// SPDX-License-Identifier: Apache-2.0
// When rows move between a cache's slots and their home, as a state machine without threads, clocks
// and rows (BagPipe, section 3.2).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "lookahead_plan/lookahead_step.h"

namespace recmill::store {

/// What a mover waits for. Tests take one after the other away, to see that each is needed.
struct MoverWaits {
  bool fetch_for_room = true;  // a step's rows are fetched once its slots are free: so no more than
                               // those of P + 1 steps are on their way
  bool fill_for_rows = true;
  bool fill_for_slots = true;  // what was there has been copied out
  bool leave_for_end = true;   // of the step
};

/// Is told of plans, of steps that are over and of rows that came, and says what is to be done
/// next. Slots in use, being filled and being emptied are disjoint by plan, so training takes no
/// lock: it waits until is_ready(). Steps are those of the stream, from 0, each once and in order.
class Mover {
 public:
  using Plan = std::shared_ptr<const LookaheadStep>;
  enum class Act {
    fetch,  // ask the home for the plan's rows, behind its fence
    fill,   // put those that came into their slots
    leave,  // copy what leaves out of its slots, and send to its home what was updated
  };
  struct Action {
    Act act = Act::fetch;
    Plan plan;
  };
  explicit Mover(const MoverWaits& waits = {}) : waits_(waits) {}

  /// Of the next step.
  void plan(Plan plan);
  /// Its update, or its lookups where it has none, are over.
  void done(int64_t step) { done_ = step; }
  /// The rows that were fetched for the step are there; in any order of steps.
  void came(int64_t step);

  /// What can be done now, if anything. `fetches`: whether that may be a new fetch.
  std::optional<Action> next(bool fetches = true) const;
  /// Of the action that next() gave.
  void carried_out(const Action& action);

  /// All rows of the step are in their slots.
  bool is_ready(int64_t step) const { return filled_ >= step; }
  /// The last step whose rows have left.
  int64_t left() const { return left_; }

 private:
  struct Planned {
    Plan plan;
    bool came = false;
  };
  /// Null: the step has no plan yet.
  const Planned* planned(int64_t step) const;
  bool can_fill(const Planned& step) const;

  const MoverWaits waits_;
  int64_t done_ = -1, fetched_ = -1, filled_ = -1, left_ = -1;
  int64_t first_ = 0;  // step of plans_.front(): those before it are over
  std::deque<Planned> plans_;
};

}  // namespace recmill::store
