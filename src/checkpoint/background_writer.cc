// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/background_writer.h"

#include <utility>

namespace recmill::checkpoint {

BackgroundWriter::BackgroundWriter(int64_t max_bytes)
    : max_bytes_(max_bytes), thread_([this] { serve(); }) {}

BackgroundWriter::~BackgroundWriter() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status BackgroundWriter::take_error() {
  return std::exchange(error_, Status());
}

Status BackgroundWriter::submit(int64_t bytes, std::function<Status()> work) {
  std::unique_lock lock(mutex_);
  // One piece larger than the limit goes alone.
  changed_.wait(lock, [&] {
    return waiting_bytes_ == 0 || waiting_bytes_ + bytes <= max_bytes_ || !error_.ok();
  });
  if (!error_.ok()) return take_error();
  waiting_bytes_ += bytes;
  queue_.push_back({bytes, std::move(work)});
  changed_.notify_all();
  return {};
}

Status BackgroundWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
  return take_error();
}

void BackgroundWriter::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    const bool discard = !error_.ok();
    busy_ = true;
    lock.unlock();
    Status status = discard ? Status() : work.run();
    work.run = nullptr;  // gives its bytes back before the caller is told that there is room
    lock.lock();
    busy_ = false;
    waiting_bytes_ -= work.bytes;
    if (!status.ok() && error_.ok()) error_ = std::move(status);
    changed_.notify_all();
  }
}

}  // namespace recmill::checkpoint
