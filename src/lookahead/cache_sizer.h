// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "lookahead_plan/cache_design.h"
#include "lookahead_plan/cache_size.h"
#include "lookahead_plan/slot_tables.h"

namespace recmill::lookahead {

inline constexpr int64_t kDefaultMostLookahead = 200;

/// Of one rank, or, the same at all, of each of several.
struct CacheOptions {
  std::optional<int64_t> lookahead = std::nullopt;  // L; none: the largest up to 200 that fits
  int64_t prefetch = 4;                             // P
  std::optional<int64_t> cache = std::nullopt;      // bytes of slots; none: what the window leaves
  int64_t memory = 0;  // bytes that the window and, where `cache` is none, the slots may take
  int ranks = 1;
  CacheDesign design = CacheDesign::forward;  // of several
  bool slots_apart = false;  // they are in other memory, where `cache` bytes are theirs
};

/// How many of some rows each slot table has [slot tables].
using RowCounts = std::vector<int64_t>;

/// Of a decider's share of a rank's slots those of rows that all ranks have, where `copied` rows
/// have several users and `alone` one; at least one, and one is left.
int64_t copied_share(int64_t copied, int64_t alone, int ranks, int64_t share);

/// Chooses the window and the slots by the first steps. No thread, no clock.
class CacheSizer {
 public:
  /// `slot_bytes` [slot tables]: what a slot takes.
  CacheSizer(const SlotTables& tables, std::vector<int64_t> slot_bytes,
             const CacheOptions& options);

  /// The next step: how many distinct rows it has, and of all steps so far the distinct rows, and
  /// those of them that several ranks use; over all ranks. `batch_bytes`: what its batches hold at
  /// a rank.
  void see(int64_t distinct, RowCounts rows, RowCounts copied, int64_t batch_bytes);
  /// Whether choose() has seen what it needs; `ended`: no step follows.
  bool is_full(bool ended) const;
  /// Fails where one step is too much.
  Result<CacheSize> choose() const;

  /// Names the bytes with which a slot table would have had `needed` slots.
  Status too_few(const Status& of_oracle, int64_t needed, int slot_table) const;

 private:
  struct Step {
    int64_t distinct = 0;
    RowCounts rows, copied;
  };
  int64_t bytes_of(const RowCounts& rows) const;
  int64_t at_a_rank(int64_t rows) const;
  int64_t window_bytes(int64_t steps) const;
  RowCounts rows_of_window(const CacheSize& size) const;
  void choose_slots(int64_t cache, CacheSize& size) const;
  int64_t slots_of(int slot_table, int64_t cache, const RowCounts& window) const;

  const SlotTables& tables_;
  const std::vector<int64_t> slot_bytes_;
  const CacheOptions options_;
  int64_t batch_bytes_ = 0;  // of the first step
  std::vector<Step> steps_;
};

}  // namespace recmill::lookahead
