// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/status.h"

namespace recmill::checkpoint {

/// Writes on a thread of its own while training goes on. The caller hands over work that owns its
/// bytes (a copy of rows, as they were after the checkpoint's iteration); it waits only when more
/// than `max_bytes` wait to be written. Work runs one by one, in order.
///
///   background.submit(bytes.size(), [part, spec, first, bytes = std::move(bytes)] {
///     return part->add(spec, first, bytes);
///   });
///
/// After a failure the work that follows is discarded without being run, until submit() or wait()
/// has reported the error; then the next checkpoint may be tried. For one calling thread.
class BackgroundWriter {
 public:
  explicit BackgroundWriter(int64_t max_bytes);
  ~BackgroundWriter();  // after all work is done; an error not yet reported is lost
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// The error of earlier work, if there is one (then `work` is discarded), else ok.
  Status submit(int64_t bytes, std::function<Status()> work);

  /// Returns when all work is done, with the first error.
  Status wait();

 private:
  struct Work {
    int64_t bytes = 0;
    std::function<Status()> run;
  };
  void serve();
  Status take_error();

  const int64_t max_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;     // guarded by mutex_
  int64_t waiting_bytes_ = 0;  // of queue_ and of the work under way; guarded by mutex_
  bool busy_ = false;          // guarded by mutex_
  bool stopping_ = false;      // guarded by mutex_
  Status error_;               // first one not yet reported; guarded by mutex_
  std::thread thread_;
};

}  // namespace recmill::checkpoint
