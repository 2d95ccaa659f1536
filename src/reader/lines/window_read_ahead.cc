// SPDX-License-Identifier: Apache-2.0
#include "reader/lines/window_read_ahead.h"

#include <algorithm>

namespace recmill::reader {

WindowReadAhead::WindowReadAhead(Load load, int64_t depth)
    : load_(std::move(load)),
      depth_(static_cast<size_t>(std::max<int64_t>(depth, 1))),
      thread_([this] { serve(); }) {}

WindowReadAhead::~WindowReadAhead() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::unique_ptr<TextWindow> WindowReadAhead::spare() {
  if (spares_.empty()) return std::make_unique<TextWindow>();
  auto window = std::move(spares_.back());
  spares_.pop_back();
  return window;
}

void WindowReadAhead::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || (next_ < slots_ && ready_.size() < depth_); });
    if (stopping_) return;
    auto window = spare();
    const int64_t generation = generation_, epoch = epoch_, slot = next_++;
    lock.unlock();
    Status status = load_(epoch, slot, *window);
    lock.lock();
    if (generation == generation_) {
      ready_.push_back({std::move(status), std::move(window)});
    } else {
      spares_.push_back(std::move(window));
    }
    changed_.notify_all();
  }
}

Result<TextWindow*> WindowReadAhead::get(int64_t epoch, int64_t slot, int64_t slots) {
  if (epoch == held_epoch_ && slot == held_slot_) return held_.get();
  std::unique_lock lock(mutex_);
  if (held_ != nullptr) spares_.push_back(std::move(held_));
  if (epoch != epoch_ || slot != held_slot_ + 1) {
    ++generation_;
    for (Loaded& loaded : ready_) spares_.push_back(std::move(loaded.window));
    ready_.clear();
    epoch_ = epoch;
    next_ = slot;
    slots_ = slots;
  }
  changed_.notify_all();
  changed_.wait(lock, [&] { return !ready_.empty(); });
  Loaded loaded = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  held_epoch_ = epoch;
  held_slot_ = slot;
  held_ = std::move(loaded.window);
  if (!loaded.status.ok()) {
    held_epoch_ = -1;  // asking again loads again
    held_slot_ = -2;
    return loaded.status;
  }
  return held_.get();
}

}  // namespace recmill::reader
