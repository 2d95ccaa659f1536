// SPDX-License-Identifier: Apache-2.0
#include "table/home/threaded_home.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace recmill::table {

ThreadedHome::ThreadedHome(RowHome& inner) : inner_(inner) {
  inner_.set_wake([this] {
    std::lock_guard lock(mutex_);
    is_awake_ = true;
    changed_.notify_all();
  });
  thread_ = std::thread([this] { run(); });
}

ThreadedHome::~ThreadedHome() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    wake_ = nullptr;
    changed_.notify_all();
  }
  thread_.join();
  inner_.set_wake(nullptr);
}

RowHome::Ticket ThreadedHome::enqueue(Call call) {
  std::lock_guard lock(mutex_);
  calls_.emplace_back(tickets_, std::move(call));
  changed_.notify_all();
  return tickets_++;
}

RowHome::Ticket ThreadedHome::fetch(std::span<const FetchedRows> rows, int64_t fence) {
  return enqueue([this, fence, of = std::vector(rows.begin(), rows.end())] {
    return inner_.fetch(of, fence);
  });
}

RowHome::Ticket ThreadedHome::put(std::span<const PutRows> rows, int64_t step) {
  return enqueue(
      [this, step, of = std::vector(rows.begin(), rows.end())] { return inner_.put(of, step); });
}

RowHome::Ticket ThreadedHome::cut(int64_t step, std::span<const PutRows> changed) {
  return enqueue([this, step, of = std::vector(changed.begin(), changed.end())] {
    return inner_.cut(step, of);
  });
}

void ThreadedHome::poll(std::vector<Answer>& answers) {
  std::lock_guard lock(mutex_);
  std::ranges::move(answers_, std::back_inserter(answers));
  answers_.clear();
}

void ThreadedHome::set_wake(std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void ThreadedHome::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || is_awake_ || !calls_.empty(); });
    if (stop_ && calls_.empty()) return;
    is_awake_ = false;
    auto calls = std::exchange(calls_, {});
    lock.unlock();
    for (auto& [ticket, call] : calls) called_[call()] = ticket;
    std::vector<Answer> some;
    inner_.poll(some);
    for (Answer& answer : some) answer.ticket = called_.extract(answer.ticket).mapped();
    lock.lock();
    std::ranges::move(some, std::back_inserter(answers_));
    if (!some.empty() && wake_) wake_();
  }
}

}  // namespace recmill::table
