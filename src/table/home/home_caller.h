// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "table/home/row_home.h"

namespace recmill::table {

/// Waits for answers of a writer's calls, on the one thread that makes them.
class HomeCaller {
 public:
  /// `home` outlives it, and has not been called yet.
  explicit HomeCaller(RowHome& home) : home_(home) {
    home.set_wake([this] {
      std::lock_guard lock(mutex_);
      is_awake_ = true;
      woken_.notify_one();
    });
  }
  ~HomeCaller() { home_.set_wake(nullptr); }
  HomeCaller(const HomeCaller&) = delete;
  HomeCaller& operator=(const HomeCaller&) = delete;

  RowHome& home() { return home_; }

  /// Until the answer is there; once a ticket.
  RowHome::Answer wait(RowHome::Ticket ticket) {
    while (answers_.count(ticket) == 0) {
      std::vector<RowHome::Answer> some;
      {
        std::unique_lock lock(mutex_);
        woken_.wait(lock, [&] { return is_awake_; });
        is_awake_ = false;
      }
      home_.poll(some);
      for (auto& answer : some) answers_[answer.ticket] = std::move(answer);
    }
    return std::move(answers_.extract(ticket).mapped());
  }

 private:
  RowHome& home_;
  std::map<RowHome::Ticket, RowHome::Answer> answers_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_awake_ = false;  // guarded by mutex_
};

}  // namespace recmill::table
