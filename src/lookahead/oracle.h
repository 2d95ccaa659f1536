// SPDX-License-Identifier: Apache-2.0
// Which rows are fetched, kept and evicted, and which ranks have them, from what the next steps
// will use (BagPipe, sections 3.2 and 3.3).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "lookahead/known_rows.h"
#include "lookahead/step_uses.h"
#include "lookahead_plan/cache_design.h"
#include "lookahead_plan/lookahead_step.h"

namespace recmill::lookahead {

inline constexpr int64_t kMostLookahead = 65535;

struct OracleOptions {
  int64_t lookahead = 0;  // L, at most kMostLookahead: the window of step x is x .. x + L
  int64_t prefetch = 0;   // P: rows of so many steps after the one that runs are in slots already;
                          // above L it counts as L
  int64_t slots = 0;      // at each rank; 0: as many as are needed
  // Of several ranks:
  int ranks = 1;
  CacheDesign design = CacheDesign::forward;
  int rank = 0;              // whose rows these are where owners are `partitioned`
  int64_t copied_slots = 0;  // at each rank, of rows that all have; 0: as many as are needed
};

/// A pure function of options and steps, step by step. Where slots are short, the row of the
/// farthest next use leaves first (of equals the larger row), but none of the steps whose rows have
/// to be there: so it fetches as seldom as any cache can that knows the window.
///
/// Of several ranks each row of a step has a holder, as the design says; it goes to another one
/// once P + 1 steps before its use it is known to be needed there, and its uses before are over.
/// Who holds a row does not depend on how many slots there are.
class Oracle {
 public:
  explicit Oracle(const OracleOptions& options);

  /// The next step of the stream: its distinct rows, ascending. Of one rank.
  void see(std::span<const int64_t> rows);
  /// The same of any number of ranks.
  void see(StepUses uses);
  /// No step follows, as far as is known.
  void end() { ended_ = true; }
  /// After end(), once all steps so far are decided, when no row has a slot: some follow.
  void go_on();
  /// The first step, or the last before which it went on.
  int64_t began() const { return std::max<int64_t>(resumed_, 0); }

  /// Whether decide() has seen what it needs: the window, and the steps that are fetched ahead.
  bool ready() const;
  /// Of the next step, from 0; ready() holds. Fails where the rows of the steps that have to be
  /// there are more than slots, and names how many they are; of one rank the most of all steps that
  /// are known.
  Result<LookaheadStep> decide();
  /// How many slots would have done, as the failed decision names them.
  int64_t slots_asked() const { return slots_asked_; }
  /// How many there were.
  int64_t slots_had() const { return slots_had_; }
  /// Of steps that are not decided, the fetches that are; nothing else of these steps is said.
  const std::deque<LookaheadStep>& fetches() const { return fetches_; }

  /// Who has the rows of a step that is not decided while its fetch is; of several ranks.
  std::span<const RowInSlot> holders(int64_t step) const {
    return steps_[static_cast<size_t>(step - first_)].held;
  }

  /// Rows in slots after the fetches of the last decision, and the most so far.
  int64_t resident() const { return resident_; }
  int64_t most_resident() const { return most_resident_; }
  /// Distinct rows of the steps that are known, and of all that is kept of them the bytes.
  int64_t window_rows() const { return ids_.count(); }
  int64_t bytes() const;

 private:
  static constexpr int32_t kNoSlot = -1, kNobody = -2;
  struct Known {
    uint32_t use = 0;    // the step that uses the row last, of those that are known; lower bits
    uint32_t index = 0;  // among that step's rows
    int32_t slot = kNoSlot;
    uint32_t evicted = 0;  // 1 + the step that evicted it while it was known; 0: none did
  };
  using Rows = KnownRows<Known>;
  /// Of a row, where there are several ranks.
  struct Held {
    int32_t holder = kNobody;  // of the last use that was fetched, also if it has left since
    uint32_t use = 0;          // that step, lower bits
  };
  struct Step {
    std::vector<int64_t> rows;  // until the step is linked
    std::vector<Rows::Id> ids;  // [rows], ascending by row
    int64_t critical = 0;       // rows that the next step uses too
    // Where slots are short:
    std::vector<uint16_t> gaps;  // [rows]: steps to the next use in the window; 0: none
    std::vector<std::vector<Rows::Id>> returning;  // [holders], heaps, largest row first: in slots
                                                   // there, and next used here
    // Where there are several ranks:
    StepUses uses;                    // who uses the rows; until they are fetched
    std::vector<RowInSlot> held;      // [rows], once they are fetched
    std::vector<HandOver> hand_over;  // at the end of the step
  };
  /// A row that another rank has to have.
  struct Arrival {
    Rows::Id id = 0;
    RowInSlot from;
    int64_t last_use = 0;  // there
  };
  struct Leaving {
    int32_t slot = 0;
    int64_t step = 0;
  };
  /// Slots of one rank, or those that all have.
  struct Pool {
    int64_t slots = 0;                // 0: as many as are needed
    std::vector<int32_t> free_slots;  // last in, first out
    int32_t used_slots = 0;
    int64_t resident = 0;
  };
  Step& at(int64_t step) { return steps_[static_cast<size_t>(step - first_)]; }
  int64_t seen() const { return first_ + static_cast<int64_t>(steps_.size()); }
  bool many() const { return ranks_ > 1; }
  /// Of holders: ranks, and behind them kEverywhere.
  size_t pool_of(int32_t holder) const {
    return static_cast<size_t>(holder == kEverywhere ? ranks_ : holder);
  }
  int32_t holder_of(Rows::Id id) const { return many() ? held_[id].holder : 0; }
  bool is_short() const { return is_short_; }
  void link(int64_t last);
  void tell_uses(LookaheadStep& decision);
  void note_returns();
  void leave(Rows::Id id, LookaheadStep& decision);
  void leave_slot(const RowInSlot& row);
  void expire(LookaheadStep& decision);
  void hand_over(LookaheadStep& decision);
  Status make_room(int32_t holder, int64_t wanted, LookaheadStep& decision);
  Status too_few(int64_t needed);
  Status fetch(LookaheadStep& decision);
  void find_holders(std::vector<Rows::Id>& wanted, std::vector<Arrival>& arrivals);
  /// Of a row that the next step to be fetched needs elsewhere: with the rows that leave at the end
  /// of the step that is decided.
  bool leaves_at_once(int64_t last_use) const { return last_use < fetched_ - prefetch_; }
  Status make_rooms(std::span<const Rows::Id> wanted, std::span<const Arrival> arrivals,
                    LookaheadStep& decision);
  int32_t next_holder(int32_t before, std::span<const int32_t> users) const;
  void count_sent(int32_t before, int32_t holder, std::span<const int32_t> users);
  void note_holders();
  RowInSlot take_slot(Rows::Id id);

  const int64_t lookahead_, prefetch_;
  const int ranks_, rank_;
  const CacheDesign design_;
  bool is_short_ = false;  // slots may be too few
  bool ended_ = false;
  int64_t resumed_ = std::numeric_limits<int64_t>::min() / 2;  // the step before which it went on
  int64_t first_ = 0;    // step of steps_.front(), the next to be decided
  int64_t linked_ = 0;   // the uses of steps before it are known
  int64_t fetched_ = 0;  // the rows of steps before it were fetched
  std::deque<Step> steps_;
  std::deque<LookaheadStep> fetches_;  // of steps from first_ on, with nothing but these
  Rows ids_;
  std::vector<Held> held_;         // [ids], where there are several ranks
  std::vector<bool> fresh_;        // kept memory
  std::vector<Rows::Id> expired_;  // kept memory
  std::vector<Pool> pools_;        // [holders]
  // Slots, by row and holder, whose rows have another holder after a step that is not decided yet.
  // A row that comes back has its slot again.
  std::map<std::pair<int64_t, int32_t>, Leaving> leaving_;
  std::vector<int64_t> sent_;  // [ranks]: rows of `forward`
  int64_t resident_ = 0, most_resident_ = 0, slots_asked_ = 0, slots_had_ = 0;
};

}  // namespace recmill::lookahead
