// SPDX-License-Identifier: Apache-2.0
// What a cache of rows does around one step of the stream: what the oracle (lookahead/) decides and
// a cached store carries out. Rows of all tables are numbered one after another, table by table.
#pragma once

#include <cstdint>
#include <vector>

namespace recmill {

/// A row that is brought into a slot.
struct RowFill {
  int64_t row = 0;
  int32_t slot = 0;
  bool operator==(const RowFill&) const = default;
};

/// Steps are places in the stream, from 0. BagPipe, section 3.2 and algorithm 1; its L counts the
/// current batch, ours does not.
struct LookaheadStep {
  int64_t step = 0;
  /// For this step: rows that are in no slot, ascending.
  std::vector<RowFill> fetch = {};
  /// No later step evicted one of these; -1: none did.
  int64_t fence = -1;
  /// [distinct rows of the step], ascending by row: the last step of the window that uses the row.
  std::vector<int64_t> last_use = {};
  /// Rows that leave their slots at the end of this step, ascending.
  std::vector<int64_t> evict = {};
  /// Rows that the next step uses too.
  int64_t critical = 0;
  bool operator==(const LookaheadStep&) const = default;
};

}  // namespace recmill
