// SPDX-License-Identifier: Apache-2.0
// A cache's calls of its home, and what they read and fill until they are answered.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "lookahead_plan/slot_tables.h"
#include "store/cached/home_steps.h"
#include "store/cached/row_records.h"
#include "table/home/row_home.h"
#include "table/row_record.h"

namespace recmill::store {

/// Where the rows of a cache are that are in no slot.
struct CacheHomeRows {
  CacheHomeRows(std::shared_ptr<table::RowHome> of) : home(std::move(of)) {}

  std::shared_ptr<table::RowHome> home;      // has not been called yet
  int64_t begin = table::RowHome::kNoFence;  // where all marks are
  /// Of several ranks: each reaches all rows, and not only those that HomeRanks says.
  bool is_shared = false;
};

/// Of all rows as after a step of the home.
struct HomeImage {
  int64_t step = 0;
  std::shared_ptr<table::RowSnapshot> rows;
};
/// One that may not be whole yet.
using ComingImage = std::shared_future<Result<HomeImage>>;

/// For one thread, but for what says otherwise. An error of a planned call is kept: failure().
class HomeCalls {
 public:
  /// All outlive it. `records` [tables]. `wake` is called on any thread when take_answers() may
  /// have something new; it returns at once.
  HomeCalls(const SlotTables& tables, std::span<const table::RowRecord> records,
            const CacheHomeRows& of, std::function<void()> wake);
  ~HomeCalls();
  HomeCalls(const HomeCalls&) = delete;
  HomeCalls& operator=(const HomeCalls&) = delete;

  // By plans; none waits:
  /// Rows that come for a step of the stream, behind what left after the step `fence`.
  void fetch_for(int64_t step, std::span<const RowInSlot> rows, int64_t fence);
  /// What leaves after a step: once each, in order.
  void leave_after(int64_t step, RowRecords updated);
  /// Nothing leaves by a plan of this rank's; what is put, or cut, from now on is behind the step.
  void pass(int64_t step) { steps_.left(step); }

  /// Returns the steps whose rows have come since.
  std::vector<int64_t> take_answers();
  /// Of a step whose rows have come.
  RowRecords take_rows(int64_t step);
  /// Waits for them.
  Result<RowRecords> wait_for_rows(int64_t step);

  /// An image as after the last step of leave_after(), and what was put since. `changed`: rows in
  /// slots, as they are. All ranks make the same cuts.
  ComingImage cut(RowRecords changed);

  // By no plan; each waits for its answer:
  Status fetch(RowRecords& rows);
  Status put(const RowRecords& rows);

  /// Rows that are on their way by plans are not wanted any more.
  void drop_fetches();

  /// Whether all calls are answered.
  bool is_idle() const { return calls_.empty(); }
  /// Waits until the images of all cuts are whole.
  Status wait_for_cuts();
  const Status& failure() const { return failure_; }

 private:
  struct Call {
    RowRecords rows;
    std::optional<int64_t> step = {};  // of fetch_for()
    int64_t image_step = 0;            // of cut()
    std::shared_ptr<std::promise<Result<HomeImage>>> image = nullptr;
    Status* waits = nullptr;  // where somebody waits for it: becomes its status
    bool* is_answered = nullptr;
  };
  table::RowHome::Ticket called(table::RowHome::Ticket ticket, Call call);
  void take(table::RowHome::Answer& answer);
  void wait();
  Status wait_for(table::RowHome::Ticket ticket);

  const SlotTables& tables_;
  const std::span<const table::RowRecord> records_;
  std::shared_ptr<table::RowHome> home_;
  HomeSteps steps_;
  std::map<table::RowHome::Ticket, Call> calls_;  // without an answer
  std::map<int64_t, RowRecords> came_;            // rows by step
  std::vector<int64_t> told_;                     // steps of came_ that take_answers() will name
  Status failure_;

  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_awake_ = false;  // guarded by mutex_
};

}  // namespace recmill::store
