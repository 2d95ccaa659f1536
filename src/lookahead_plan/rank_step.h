// SPDX-License-Identifier: Apache-2.0
// What one rank of several does around one step of the stream: what deciders (lookahead/) say and a
// cached store carries out.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "lookahead_plan/lookahead_step.h"

namespace recmill {

/// A row that a rank sends or receives, with its state.
struct RowMove {
  enum class Kind : int32_t {
    fetch,     // from its home to a slot
    evict,     // from a slot to its home
    hand_over  // from slot to slot
  };
  int32_t peer = 0;  // the other rank, which may be this one
  Kind kind = Kind::fetch;
  RowInSlot at;  // this rank's slot; of a home only the row
  auto operator<=>(const RowMove&) const = default;
};

/// Ascending by peer, kind and row, so that the n-th that a rank sends to another is the n-th that
/// the other receives from it.
struct RowMoves {
  std::vector<RowMove> out, in;
  bool operator==(const RowMoves&) const = default;
};

/// A row that another rank looks up.
struct RowLent {
  int64_t user = 0;  // that rank
  RowInSlot row;
  auto operator<=>(const RowLent&) const = default;
};

/// When a step is over, ranks move rows in two rounds, in which all take part: first what the next
/// step needs, or the second round.
struct RankStep {
  int64_t step = 0;
  /// The distinct rows that this rank looks up, ascending, and who has each.
  std::vector<RowInSlot> uses = {};
  /// Rows in slots of this rank that any rank looks up.
  std::vector<RowInSlot> held = {};
  /// Rows in slots of this rank alone whose weights other ranks look up, by rank.
  std::vector<RowLent> lent = {};
  /// Rows that other ranks look up in the step after the next one, which leaves them as they are,
  /// in slots of this rank since before the step: their weights go beside the next step. And those
  /// of other ranks, ascending, that this rank looks up then.
  std::vector<RowLent> early_out = {};
  std::vector<RowInSlot> early_in = {};
  /// Rows whose slots at this rank are free once they are copied out.
  std::vector<RowInSlot> leave = {};
  bool any_critical = false;  // of all ranks: whether there is a first round
  RowMoves critical = {}, rest = {};
  /// No later step evicted one of the rows that are fetched in `rest`; -1: none did.
  int64_t fence = -1;
  /// Of a step before which no row was in a slot, which is step 0, and each behind a place where what
  /// follows was not known: what comes before it.
  bool begins = false;
  RowMoves before = {};
  bool operator==(const RankStep&) const = default;
};

}  // namespace recmill
