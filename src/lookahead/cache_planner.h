// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "lookahead/cache_sizer.h"
#include "lookahead/oracle.h"
#include "lookahead_plan/cache_size.h"
#include "lookahead_plan/lookahead_step.h"
#include "lookahead_plan/row_index.h"
#include "lookahead_plan/slot_tables.h"

namespace recmill::lookahead {

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
  /// Oracle::go_on().
  void go_on();

  /// Of the next step; null: more steps have to be seen first, or none is left. An error says which
  /// key of the configuration would have to be larger.
  Result<std::shared_ptr<const LookaheadStep>> next();

  /// What was chosen; before the first plan: zeros.
  const CacheSize& size() const { return size_; }
  /// Bytes that its oracles hold.
  int64_t bytes() const;

 private:
  struct Nothing {};
  using Rows = RowIndex<Nothing>;

  void count_window(std::span<const int64_t> rows, int64_t batch_bytes);
  Status choose();
  void give_oracles(std::span<const int64_t> rows);
  LookaheadStep merged(std::span<const LookaheadStep> decisions) const;

  const SlotTables& tables_;
  CacheSizer sizer_;
  CacheSize size_;
  bool ended_ = false, told_end_ = false;
  // Before the choice:
  std::vector<std::vector<int64_t>> seen_;  // steps
  Rows known_;                              // their distinct rows
  RowCounts counts_;                        // of known_
  // After it:
  std::vector<Oracle> oracles_;  // [slot tables]
};

}  // namespace recmill::lookahead
