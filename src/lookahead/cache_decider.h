// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/status.h"
#include "lookahead/cache_sizer.h"
#include "lookahead/known_rows.h"
#include "lookahead/oracle.h"
#include "lookahead/step_uses.h"
#include "lookahead_plan/cache_design.h"
#include "lookahead_plan/cache_size.h"
#include "lookahead_plan/rank_step.h"
#include "lookahead_plan/slot_tables.h"

namespace recmill::lookahead {

/// What one rank of several decides for all of them: about the rows whose home it is. Its share of
/// each rank's slots lies behind those of lower ranks. A pure function of what it sees.
class CacheDecider {
 public:
  /// `early`: whether ranks send weights ahead of the step that looks them up.
  CacheDecider(const SlotTables& tables, int rank, int ranks, CacheDesign design,
               bool early = true);

  /// The uses of its rows in the next step.
  void see(StepUses uses);
  /// No step follows.
  void end();
  /// Oracle::go_on().
  void go_on();
  /// Once, by the steps that it has seen, and of all deciders the same: from now on it decides.
  void choose(const CacheSize& size);

  /// Whether next() has seen what it needs.
  bool ready() const { return !oracles_.empty() && oracles_[0].ready(); }
  /// Of the next step the part of each rank [ranks] that these rows have. Fails where slots are too
  /// few, and names a share of them.
  Result<std::vector<RankStep>> next();

  /// Of each slot table the distinct rows of all steps so far, and those of them that several ranks
  /// use; before the choice.
  const RowCounts& rows_seen() const { return rows_seen_; }
  const RowCounts& copied_seen() const { return copied_seen_; }
  /// How many slots of its share would have done for the part that failed, in which slot table.
  int64_t slots_asked() const;
  int failed_slot_table() const { return failed_; }
  int64_t bytes() const;

 private:
  void count(const StepUses& uses);
  void number_slots(size_t slot_table, LookaheadStep& decision) const;
  RowInSlot of_all(size_t slot_table, RowInSlot row) const;
  void tell_uses(const LookaheadStep& decision, const StepUses& uses,
                 std::vector<RankStep>& parts) const;
  void evict(const LookaheadStep& decision, std::span<const RowInSlot> fetched,
             std::vector<RankStep>& parts) const;
  void hand_over(const LookaheadStep& decision, std::vector<RankStep>& parts) const;
  void lend_early(size_t slot_table, const LookaheadStep& decision,
                  std::span<const RowInSlot> fetched, std::vector<RankStep>& parts) const;
  void fetch(size_t slot_table, std::span<const RowInSlot> rows, RowMoves RankStep::*moves,
             std::vector<RankStep>& parts) const;

  const SlotTables& tables_;
  const int32_t rank_, ranks_;
  const CacheDesign design_;
  const bool early_;
  bool ended_ = false;
  std::deque<std::vector<StepUses>> uses_;  // of steps that are not decided: [slot tables]
  // Before the choice:
  KnownRows<int32_t> known_;  // rows, with the only user, or kEverywhere
  RowCounts rows_seen_, copied_seen_;
  // After it:
  CacheSize size_;
  std::vector<Oracle> oracles_;  // [slot tables]
  int failed_ = 0;
};

/// One of the parts of each decider: what the rank does.
RankStep merged(std::span<const RankStep> parts);

}  // namespace recmill::lookahead
