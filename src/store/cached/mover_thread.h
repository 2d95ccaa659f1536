// SPDX-License-Identifier: Apache-2.0
// A Mover with a thread, slots and a home.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/status.h"
#include "lookahead_plan/moved_rows.h"
#include "store/cached/handed_work.h"
#include "store/cached/mover.h"
#include "store/cached/row_records.h"
#include "store/cached/slot_store.h"
#include "table/home/row_home.h"

namespace recmill::store {

/// One writer of a home. Steps of the home ascend with those of the stream; between two of them
/// there is room for puts that no plan asked for.
class MoverThread {
 public:
  /// `records` [tables]; all outlive it. Nobody else calls the home.
  MoverThread(const SlotTables& tables, std::span<const table::RowRecord> records,
              table::RowHome& home);
  /// Finishes what steps that are over have left to do.
  ~MoverThread();

  /// Before the first plan.
  void open(SlotStore& slots) { slots_ = &slots; }
  void plan(Mover::Plan plan);
  /// Waits until all rows of the step are in their slots; fails where the home has failed. Takes no
  /// lock where they are there.
  Status wait_until_ready(int64_t step);
  /// Takes no lock and wakes nobody: that costs the caller its core where all are busy. What may
  /// move now moves with the next plan, or when somebody waits.
  void done(int64_t step) { done_ = step; }

  /// Calls `work` on the mover's thread while nothing moves, and waits for it. What steps before
  /// have left to do is done then. `work` may call the home: by itself, or as follows.
  Status call(const std::function<Status()>& work);
  // Within call(); each waits for its answer:
  Status fetch(RowRecords& rows);
  Status put(const RowRecords& rows);
  Result<std::shared_ptr<table::RowSnapshot>> cut();

  /// By plans, between slots and their home.
  MovedRows moved() const { return {.fetched = fetched_, .written_back = written_back_}; }

 private:
  /// A call of the home that has no answer yet, and what it reads or fills.
  struct Call {
    RowRecords rows;
    int64_t step = -1;  // of a fetch by plan; else -1
  };

  void run();
  Status carry_out(const Mover::Action& action);
  void fetch_planned(const Mover::Plan& plan);
  Status fill(const Mover::Plan& plan);
  Status leave(const Mover::Plan& plan);
  void take_answers();
  Result<table::RowHome::Answer> wait_for(table::RowHome::Ticket ticket);
  int64_t step_at_home(int64_t step) const;
  int64_t next_step_at_home();

  const SlotTables& tables_;
  const std::span<const table::RowRecord> records_;
  table::RowHome& home_;
  SlotStore* slots_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  Mover mover_;
  HandedWork work_;
  bool awake_ = false;
  bool stop_ = false;
  Status failure_;

  std::atomic<int64_t> done_{-1};   // step of the last done()
  std::atomic<int64_t> ready_{-1};  // the last step whose rows are in their slots

  // Of the thread:
  std::map<table::RowHome::Ticket, Call> calls_;                      // without an answer
  std::map<table::RowHome::Ticket, table::RowHome::Answer> answers_;  // of calls within call()
  std::map<int64_t, RowRecords> came_;                                // rows by step, to be filled
  int64_t unplanned_ = 0;                                             // puts since the last planned
  std::atomic<int64_t> fetched_{0}, written_back_{0};

  std::thread thread_;  // last
};

}  // namespace recmill::store
