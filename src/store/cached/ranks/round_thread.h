// SPDX-License-Identifier: Apache-2.0
// The rounds of a rank, with a thread, slots, a home and the other ranks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "lookahead_plan/moved_rows.h"
#include "store/cached/handed_work.h"
#include "store/cached/home_calls.h"
#include "store/cached/ranks/rounds.h"
#include "store/cached/row_records.h"
#include "store/cached/slots.h"
#include "store/exchange/early_rows.h"
#include "table/row_record.h"

namespace recmill::store {

/// Rows of this rank's slots and of its home go to other ranks, and come from them. Homes of ranks
/// send what they are not asked for, as plans say. Where ranks share a home each takes from it what
/// comes to its own slots, and brings what leaves them; only what ranks hand to each other crosses
/// them then.
class RoundThread {
 public:
  /// `records` [tables]; all outlive it. Nobody else calls the home or uses the communicator.
  RoundThread(const SlotTables& tables, std::span<const table::RowRecord> records,
              const CacheHomeRows& home, Communicator& communicator);
  /// Finishes the rounds of steps that are over. If a rank failed, its communicator was told.
  ~RoundThread();

  /// Before the first plan.
  void open(Slots& slots) { slots_ = &slots; }
  /// `early`: room for the plan's early rows, which come with the step's rest; null: none are sent
  /// early.
  void plan(Rounds::Plan plan, std::shared_ptr<EarlyRows> early);
  /// Waits until all rows of the step are in their slots; fails where a rank has failed. Of step 0
  /// that begins the rounds, with P as `prefetch`.
  Status wait_until_ready(int64_t step, int64_t prefetch);
  void done(int64_t step);

  /// Calls `work` on this thread once the rounds of steps that are over are, and waits for it.
  /// Where `work` talks to other ranks all have to call it, after the same step.
  Status call(const std::function<Status()>& work);
  // Within call():
  /// Rows were written: what is on its way may be older.
  void fetch_again();
  HomeCalls& home() { return home_; }
  Communicator& communicator() { return communicator_; }
  /// What has come of steps that are not over.
  const std::deque<std::shared_ptr<EarlyRows>>& came_early() const { return came_early_; }

  /// By plans, between slots and homes, and what crossed ranks.
  MovedRows moved() const {
    return {.fetched = fetched_, .written_back = written_back_, .handed_over = handed_over_};
  }

 private:
  static constexpr int64_t kBefore = -1;  // the step whose rows come before step 0
  /// What goes to each rank in a round.
  using Outgoing = std::vector<std::vector<std::byte>>;  // [ranks]

  void run();
  Status carry_out(const Rounds::Round& round, EarlyRows* early);
  void fetch_ahead(std::unique_lock<std::mutex>& lock);
  void leave(const RankStep& plan);
  void copy_out(const RowMoves& moves, Outgoing& out) const;
  Status fetch_from_home(const RowMoves& moves, Outgoing& out);
  static std::vector<RowInSlot> rows_from_home(const RowMoves& moves);
  Status fill_from_home(const RowMoves& moves, int64_t step, int64_t fence);
  bool goes_over_ranks(const RowMove& move) const {
    return !is_shared_ || move.kind == RowMove::Kind::hand_over;
  }
  void lend_early(const RankStep& plan, Outgoing& out) const;
  Status exchange(const RowMoves& moves, const Outgoing& from_slots, EarlyRows* early = nullptr);
  Status deliver(const RowMoves& moves, const Received& received, EarlyRows* early);
  Status take_early(int rank, std::span<const std::byte>& message, EarlyRows& early) const;
  Status wrong_length(int rank) const;
  Status put_home(std::span<std::pair<RowInSlot, const std::byte*>> rows);

  const SlotTables& tables_;
  const std::span<const table::RowRecord> records_;
  const bool is_shared_;  // the home
  HomeCalls home_;
  Communicator& communicator_;
  Slots* slots_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  Rounds rounds_;
  std::map<int64_t, std::shared_ptr<EarlyRows>> early_;  // by step whose rounds they come with
  HandedWork work_;
  bool awake_ = false;
  bool stop_ = false;
  Status failure_;

  // Of the thread:
  Outgoing first_, rest_;                              // of the two rounds of a step, from slots
  std::deque<std::shared_ptr<EarlyRows>> came_early_;  // of the next two steps
  int64_t asked_ = kBefore - 1;       // the last step whose rows were asked of a shared home
  int64_t written_before_ = kBefore;  // the step whose rows are asked for in its round
  std::atomic<int64_t> fetched_{0}, written_back_{0}, handed_over_{0};

  std::thread thread_;  // last
};

}  // namespace recmill::store
