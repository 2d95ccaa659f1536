// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "table/home/row_home.h"

namespace recmill::table {

/// A home whose calls may take long, as of a disk, behind a thread that makes them one after
/// another.
class ThreadedHome final : public RowHome {
 public:
  /// `inner` outlives it, and is called by nobody else.
  explicit ThreadedHome(RowHome& inner);
  /// Makes the calls that are left.
  ~ThreadedHome() override;

  Ticket fetch(std::span<const FetchedRows> rows, int64_t fence) override;
  Ticket put(std::span<const PutRows> rows, int64_t step) override;
  Ticket cut(int64_t step, std::span<const PutRows> changed) override;
  void poll(std::vector<Answer>& answers) override;
  void set_wake(std::function<void()> wake) override;

 private:
  using Call = std::function<Ticket()>;  // of the inner home
  Ticket enqueue(Call call);
  void run();

  RowHome& inner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::deque<std::pair<Ticket, Call>> calls_;
  std::vector<Answer> answers_;
  std::function<void()> wake_;
  Ticket tickets_ = 0;
  bool is_awake_ = false;  // the inner one has answers
  bool stop_ = false;

  std::map<Ticket, Ticket> called_;  // of the thread: by the inner one's ticket
  std::thread thread_;               // last
};

}  // namespace recmill::table
