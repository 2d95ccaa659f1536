// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "hotset/hot_schedule.h"

namespace recmill::train {

/// What training tells the source of its batches of each schedule's loss, in order, as the state
/// that the loss leaves. Each side has a thread of its own.
class ScheduleLosses {
 public:
  void put(const hotset::ScheduleState& judged) {
    const std::lock_guard lock(mutex_);
    judged_.push_back(judged);
    changed_.notify_all();
  }
  /// Waits for the next one; none after close().
  std::optional<hotset::ScheduleState> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !judged_.empty(); });
    if (judged_.empty()) return std::nullopt;
    const hotset::ScheduleState state = judged_.front();
    judged_.pop_front();
    return state;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<hotset::ScheduleState> judged_;  // guarded by mutex_
  bool closed_ = false;                       // guarded by mutex_
};

}  // namespace recmill::train
