// SPDX-License-Identifier: Apache-2.0
// A Mover with a thread, slots and a home.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "base/status.h"
#include "lookahead_plan/moved_rows.h"
#include "store/cached/handed_work.h"
#include "store/cached/home_calls.h"
#include "store/cached/mover.h"
#include "store/cached/row_records.h"
#include "store/cached/slot_store.h"
#include "table/row_record.h"

namespace recmill::store {

class MoverThread {
 public:
  /// `records` [tables]; all outlive it. Nobody else calls the home.
  MoverThread(const SlotTables& tables, std::span<const table::RowRecord> records,
              const CacheHomeRows& home);
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
  /// have left to do is done then. `work` may call home().
  Status call(const std::function<Status()>& work);
  /// The same as soon as what leaves after the steps that are over has been sent home, while rows
  /// of steps to come are on their way. `work` waits for nothing.
  Status call_between(const std::function<Status()>& work);
  /// Of the mover's thread.
  HomeCalls& home() { return home_; }

  /// By plans, between slots and their home.
  MovedRows moved() const { return {.fetched = fetched_, .written_back = written_back_}; }

 private:
  void run();
  Status carry_out(const Mover::Action& action);
  Status leave(const Mover::Plan& plan);
  void take_answers(std::unique_lock<std::mutex>& lock);

  const SlotTables& tables_;
  const std::span<const table::RowRecord> records_;
  SlotStore* slots_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  Mover mover_;
  HandedWork work_, between_;
  bool awake_ = false;
  bool stop_ = false;
  Status failure_;

  std::atomic<int64_t> done_{-1};   // step of the last done()
  std::atomic<int64_t> ready_{-1};  // the last step whose rows are in their slots
  std::atomic<int64_t> fetched_{0}, written_back_{0};

  HomeCalls home_;
  std::thread thread_;  // last
};

}  // namespace recmill::store
