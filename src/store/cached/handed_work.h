// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "base/status.h"

namespace recmill::store {

/// Work that other threads hand to one, which carries it out between what else it does. `lock` is
/// of the mutex that guards this, `changed` what that thread and those that wait are woken by.
class HandedWork {
 public:
  bool empty() const { return work_.empty(); }

  /// Waits until the thread has carried it out.
  Status call(const std::function<Status()>& body, std::unique_lock<std::mutex>& lock,
              std::condition_variable& changed) {
    Work work{&body, {}};
    work_.push_back(&work);
    changed.notify_all();
    changed.wait(lock, [&] { return work.done; });
    return work.status;
  }

  /// Of the thread: the next one, without the lock; or only answers it, where something has failed.
  void carry_out(const Status& failure, std::unique_lock<std::mutex>& lock,
                 std::condition_variable& changed) {
    Work* const work = work_.front();
    work_.pop_front();
    Status status = failure;
    lock.unlock();
    if (status.ok()) status = (*work->body)();
    lock.lock();
    work->status = std::move(status);
    work->done = true;
    changed.notify_all();
  }

 private:
  struct Work {
    const std::function<Status()>* body;
    Status status;
    bool done = false;
  };
  std::deque<Work*> work_;
};

}  // namespace recmill::store
