// SPDX-License-Identifier: Apache-2.0
// A thread that loads the windows of an epoch before they are asked for.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "reader/lines/row_source.h"
#include "reader/row_order.h"

namespace recmill::reader {

class WindowReadAhead {
 public:
  /// Fills `window` with the rows of `slot`. Called by one thread at a time.
  using Load = std::function<Status(int64_t epoch, int64_t slot, TextWindow& window)>;

  /// `depth` windows at most wait to be taken.
  WindowReadAhead(Load load, int64_t depth);
  ~WindowReadAhead();

  /// The window in `slot` of an epoch of `slots`; waits for it. Slots in sequence were read ahead;
  /// any other discards what was. The window stays valid until the next call.
  Result<TextWindow*> get(int64_t epoch, int64_t slot, int64_t slots);

 private:
  struct Loaded {
    Status status;
    std::unique_ptr<TextWindow> window;
  };
  void serve();
  std::unique_ptr<TextWindow> spare();

  const Load load_;
  const size_t depth_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  bool stopping_ = false;
  int64_t generation_ = 0;                     // counts seeks, so that a late load is dropped
  int64_t epoch_ = -1, next_ = 0, slots_ = 0;  // what the thread loads next
  std::deque<Loaded> ready_;                   // slots [expected_, next_) as far as loaded
  std::vector<std::unique_ptr<TextWindow>> spares_;

  // The caller's own:
  std::unique_ptr<TextWindow> held_;
  int64_t held_epoch_ = -1, held_slot_ = -1;

  std::thread thread_;
};

}  // namespace recmill::reader
