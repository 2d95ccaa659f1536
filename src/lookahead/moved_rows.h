// SPDX-License-Identifier: Apache-2.0
// How many rows the designs of a cache over ranks move, from what the oracle decides (BagPipe,
// section 3.3), and how many ranks without a cache do.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lookahead/step_uses.h"
#include "lookahead_plan/lookahead_step.h"
#include "lookahead_plan/moved_rows.h"

namespace recmill::lookahead {

/// Whether the row's table is frozen: then it has no gradients, and is never put back.
using IsFrozen = std::function<bool(int64_t row)>;

/// Each rank fetches its distinct rows, and sends a sum of gradients for each. `is_frozen` may be
/// null: no row is.
MovedRows moved_without_cache(const StepUses& uses, const IsFrozen& is_frozen = nullptr);

/// Step by step, as a run carries the decisions of an oracle for these ranks out.
class MovedRowsCounter {
 public:
  /// The rank that has a row which no rank has in a slot, and where sums of copies meet.
  using HomeOf = std::function<int32_t(int64_t row)>;
  MovedRowsCounter(int ranks, HomeOf home_of, IsFrozen is_frozen = nullptr);

  /// `decision` is the oracle's of `uses`.
  void add(const StepUses& uses, const LookaheadStep& decision);

  const MovedRows& moved() const { return moved_; }
  /// [ranks]: rows that each has sent, without what homes send and are sent.
  const std::vector<int64_t>& sent() const { return sent_; }

 private:
  bool changes(int64_t row) const { return !is_frozen_ || !is_frozen_(row); }
  void send(int32_t from, int64_t& of, int64_t rows = 1);
  void use(const RowInSlot& row, std::span<const int32_t> users);

  const int32_t ranks_;
  const HomeOf home_of_;
  const IsFrozen is_frozen_;
  MovedRows moved_;
  std::vector<int64_t> sent_;
};

}  // namespace recmill::lookahead
