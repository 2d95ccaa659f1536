// SPDX-License-Identifier: Apache-2.0
// Which rows are fetched, kept and evicted, from what the next steps will use (BagPipe,
// section 3.2).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/status.h"
#include "lookahead/known_rows.h"
#include "lookahead_plan/lookahead_step.h"

namespace recmill::lookahead {

inline constexpr int64_t kMostLookahead = 65535;

struct OracleOptions {
  int64_t lookahead = 0;  // L, at most kMostLookahead: the window of step x is x .. x + L
  int64_t prefetch = 0;   // P: rows of so many steps after the one that runs are in slots already;
                          // above L it counts as L
  int64_t slots = 0;      // 0: as many as are needed
};

/// A pure function of options and steps, step by step. Where slots are short, the row of the
/// farthest next use leaves first (of equals the larger row), but none of the steps whose rows have
/// to be there: so it fetches as seldom as any cache can that knows the window.
class Oracle {
 public:
  explicit Oracle(const OracleOptions& options);

  /// The next step of the stream: its distinct rows, ascending.
  void see(std::span<const int64_t> rows);
  /// No step follows.
  void end() { ended_ = true; }

  /// Whether decide() has seen what it needs: the window, and the steps that are fetched ahead.
  bool ready() const;
  /// Of the next step, from 0; ready() holds. Fails where the rows of the steps that have to be
  /// there are more than slots, and names how many they are.
  Result<LookaheadStep> decide();
  /// How many slots would have done for the decision that failed.
  int64_t slots_asked() const { return slots_asked_; }

  /// Rows in slots after the fetches of the last decision, and the most so far.
  int64_t resident() const { return resident_; }
  int64_t most_resident() const { return most_resident_; }
  /// Distinct rows of the steps that are known, and of all that is kept of them the bytes.
  int64_t window_rows() const { return ids_.count(); }
  int64_t bytes() const;

 private:
  static constexpr int32_t kNoSlot = -1;
  struct Known {
    uint32_t use = 0;    // the step that uses the row last, of those that are known; lower bits
    uint32_t index = 0;  // among that step's rows
    int32_t slot = kNoSlot;
    uint32_t evicted = 0;  // 1 + the step that evicted it while it was known; 0: none did
  };
  using Rows = KnownRows<Known>;
  struct Step {
    std::vector<int64_t> rows;  // until the step is linked
    std::vector<Rows::Id> ids;  // [rows], ascending by row
    int64_t critical = 0;       // rows that the next step uses too
    // Where slots are short:
    std::vector<uint16_t> gaps;       // [rows]: steps to the next use in the window; 0: none
    std::vector<Rows::Id> returning;  // a heap, largest row first: in slots, and next used here
  };
  Step& at(int64_t step) { return steps_[static_cast<size_t>(step - first_)]; }
  int64_t seen() const { return first_ + static_cast<int64_t>(steps_.size()); }
  void link(int64_t last);
  void tell_uses(LookaheadStep& decision);
  void note_returns();
  void leave(Rows::Id id, LookaheadStep& decision);
  void expire(LookaheadStep& decision);
  Status make_room(int64_t wanted, LookaheadStep& decision);
  Status fetch(LookaheadStep& decision);
  int32_t take_slot();

  const int64_t lookahead_, prefetch_, slots_;
  bool ended_ = false;
  int64_t first_ = 0;    // step of steps_.front(), the next to be decided
  int64_t linked_ = 0;   // the uses of steps before it are known
  int64_t fetched_ = 0;  // the rows of steps before it were fetched
  std::deque<Step> steps_;
  std::deque<LookaheadStep> fetches_;  // of steps from first_ on, with nothing but these
  Rows ids_;
  std::vector<bool> fresh_;          // kept memory
  std::vector<Rows::Id> expired_;    // kept memory
  std::vector<int32_t> free_slots_;  // last in, first out
  int32_t used_slots_ = 0;
  int64_t resident_ = 0, most_resident_ = 0, slots_asked_ = 0;
};

}  // namespace recmill::lookahead
