// SPDX-License-Identifier: Apache-2.0
// How many rows the designs of a cache over ranks move, from what the oracle decides (BagPipe,
// section 3.3), and how many ranks without a cache do.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "lookahead/step_uses.h"
#include "lookahead_plan/cache_design.h"
#include "lookahead_plan/lookahead_step.h"
#include "lookahead_plan/moved_rows.h"

namespace recmill::lookahead {

/// Each rank fetches its distinct rows, and sends a sum of gradients for each.
MovedRows moved_without_cache(const StepUses& uses);

/// Step by step, as a run of enough slots carries a design out.
class MovedRowsCounter {
 public:
  MovedRowsCounter(CacheDesign design, int ranks);

  /// `decision` is the oracle's of `uses.rows`.
  void add(const StepUses& uses, const LookaheadStep& decision);

  const MovedRows& moved() const { return moved_; }
  /// [ranks]: rows that each has sent, without what homes send and are sent.
  const std::vector<int64_t>& sent() const { return sent_; }

 private:
  static constexpr int32_t kEverywhere = -1;
  void send(int32_t from, int64_t& of, int64_t rows = 1);
  void with_owner(int64_t row, std::span<const int32_t> users, int32_t& owner);
  void with_copies(int64_t row, std::span<const int32_t> users, bool leaves, int32_t& owner);
  int32_t owner_of(int64_t row, std::span<const int32_t> users) const;

  const CacheDesign design_;
  const int32_t ranks_;
  MovedRows moved_;
  std::vector<int64_t> sent_;
  std::unordered_map<int64_t, int32_t> owners_;  // of rows in slots; kEverywhere: copies
};

}  // namespace recmill::lookahead
