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

namespace recmill::lookahead {

/// Rows by what they are moved for. Those between a row's home and a rank count wherever these two
/// are; the others only where they cross ranks.
struct MovedRows {
  int64_t fetched = 0;       // from homes into slots
  int64_t written_back = 0;  // from slots to homes
  int64_t gradients = 0;     // sums of a rank's lookups, to the rank that updates the row
  int64_t weights = 0;       // to ranks that look the row up
  int64_t handed_over = 0;   // with their state, to another owner

  int64_t total() const { return fetched + written_back + gradients + weights + handed_over; }
  bool operator==(const MovedRows&) const = default;
};

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
