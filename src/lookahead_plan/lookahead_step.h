// SPDX-License-Identifier: Apache-2.0
// What a cache of rows does around one step of the stream: what the oracle (lookahead/) decides and
// a cached store carries out. Rows of all tables are numbered one after another, table by table
// (slot_tables.h).
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace recmill {

/// All ranks have the row, each in its slot of that number.
inline constexpr int32_t kEverywhere = -1;

struct RowInSlot {
  int64_t row = 0;
  int32_t slot = 0;    // of its slot table, at its holder
  int32_t holder = 0;  // the rank that has it, or kEverywhere
  auto operator<=>(const RowInSlot&) const = default;
};

/// A row that goes from slot to slot, with its state.
struct HandOver {
  RowInSlot from, to;  // of one row
  int64_t step = 0;    // the first that finds it there
  auto operator<=>(const HandOver&) const = default;
};

/// Steps are places in the stream, from 0. BagPipe, section 3.2 and algorithm 1; its L counts the
/// current batch, ours does not.
struct LookaheadStep {
  int64_t step = 0;
  /// The distinct rows of the step, ascending, where each is then, and the last step of the window
  /// that uses it.
  std::vector<RowInSlot> uses = {};
  std::vector<int64_t> last_use = {};  // [uses]
  /// Of those the ones that are brought into their slots for this step.
  std::vector<RowInSlot> fetch = {};
  /// Slots that are filled for this step are free after that one; negative: from the beginning.
  int64_t filled_after = -1;
  /// No later step evicted one of the rows that are fetched; -1: none did.
  int64_t fence = -1;
  /// Rows that leave their slots at the end of this step, ascending.
  std::vector<RowInSlot> evict = {};
  /// Rows that go to other holders at the end of this step, ascending.
  std::vector<HandOver> hand_over = {};
  /// Rows that the next step uses too.
  int64_t critical = 0;
  bool operator==(const LookaheadStep&) const = default;
};

}  // namespace recmill
