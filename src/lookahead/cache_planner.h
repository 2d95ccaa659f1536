// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "lookahead/oracle.h"
#include "lookahead_plan/cache_size.h"
#include "lookahead_plan/lookahead_step.h"
#include "lookahead_plan/row_index.h"
#include "lookahead_plan/slot_tables.h"

namespace recmill::lookahead {

inline constexpr int64_t kDefaultMostLookahead = 200;

struct CacheOptions {
  std::optional<int64_t> lookahead = std::nullopt;  // L; none: the largest up to 200 that fits
  int64_t prefetch = 4;                             // P
  std::optional<int64_t> cache = std::nullopt;      // bytes of slots; none: what the window leaves
  int64_t memory = 0;  // bytes that the window and, where `cache` is none, the slots may take
};

/// Plans the steps of a stream for one rank alone: chooses the window and the slots by its first
/// steps, and lets an oracle for each slot table decide. No thread, no clock.
class CachePlanner {
 public:
  /// `slot_bytes` [slot tables]: what a slot takes.
  CachePlanner(const SlotTables& tables, std::vector<int64_t> slot_bytes,
               const CacheOptions& options);

  /// Bytes that it holds at most, with the plans of steps whose rows are on their way or in use,
  /// where a step has so many distinct rows and a window and the step behind it so many.
  static int64_t most_bytes(int64_t lookahead, int64_t prefetch, int64_t step_rows,
                            int64_t window_rows);

  /// The distinct rows of the next step, ascending, and the bytes that its batches hold.
  void see(std::vector<int64_t> rows, int64_t batch_bytes);
  /// No step follows.
  void end() { ended_ = true; }

  /// Of the next step; null: more steps have to be seen first, or none is left. An error says which
  /// key of the configuration would have to be larger.
  Result<std::shared_ptr<const LookaheadStep>> next();

  /// What was chosen; before the first plan: zeros.
  const CacheSize& size() const { return size_; }
  /// Bytes that its oracles hold.
  int64_t bytes() const;

 private:
  /// How many of some rows each slot table has.
  using RowCounts = std::vector<int64_t>;  // [slot tables]
  struct Nothing {};
  using Rows = RowIndex<Nothing>;

  bool window_is_full() const;
  void count_window(std::span<const int64_t> rows);
  Status choose();
  void choose_slots(int64_t cache);
  int64_t bytes_of(const RowCounts& rows) const;
  int64_t window_bytes(int64_t steps) const;
  void give_oracles(std::span<const int64_t> rows);
  LookaheadStep merged(std::span<const LookaheadStep> decisions) const;
  Status too_few(const Status& of_oracle, int slot_table) const;

  const SlotTables& tables_;
  const std::vector<int64_t> slot_bytes_;
  const CacheOptions options_;
  CacheSize size_;
  bool ended_ = false, told_end_ = false;
  // Before the choice:
  int64_t batch_bytes_ = 0;                 // of the first step
  std::vector<std::vector<int64_t>> seen_;  // steps
  Rows known_;                              // their distinct rows
  std::vector<RowCounts> known_after_;      // [seen steps]
  // After it:
  RowCounts window_rows_;        // of the first window
  std::vector<Oracle> oracles_;  // [slot tables]
};

}  // namespace recmill::lookahead
