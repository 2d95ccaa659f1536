// SPDX-License-Identifier: Apache-2.0
#include "store/cached/mover_thread.h"

#include <utility>
#include <vector>

namespace recmill::store {

MoverThread::MoverThread(const SlotTables& tables, std::span<const table::RowRecord> records,
                         const CacheHomeRows& home)
    : tables_(tables), records_(records), home_(tables, records, home, [this] {
        std::lock_guard lock(mutex_);
        awake_ = true;
        changed_.notify_all();
      }) {
  thread_ = std::thread([this] { run(); });
}

MoverThread::~MoverThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void MoverThread::plan(Mover::Plan plan) {
  std::lock_guard lock(mutex_);
  mover_.plan(std::move(plan));
  changed_.notify_all();
}

Status MoverThread::wait_until_ready(int64_t step) {
  if (ready_ >= step) return {};
  std::unique_lock lock(mutex_);
  changed_.notify_all();  // the step may wait for the end of another one
  changed_.wait(lock, [&] { return ready_ >= step || !failure_.ok(); });
  return failure_;
}

Status MoverThread::call(const std::function<Status()>& body) {
  std::unique_lock lock(mutex_);
  return work_.call(body, lock, changed_);
}

Status MoverThread::call_between(const std::function<Status()>& body) {
  std::unique_lock lock(mutex_);
  return between_.call(body, lock, changed_);
}

void MoverThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (std::exchange(awake_, false)) take_answers(lock);
    mover_.done(done_);
    if (!between_.empty() && (mover_.left() == done_ || !failure_.ok())) {
      between_.carry_out(failure_, lock, changed_);
      continue;
    }
    const bool pauses = !work_.empty() || stop_;
    const auto action = failure_.ok() ? mover_.next(/*fetches=*/!pauses) : std::nullopt;
    if (action) {
      lock.unlock();
      Status status = carry_out(*action);
      lock.lock();
      if (status.ok()) {
        mover_.carried_out(*action);
        if (action->act == Mover::Act::fill) ready_ = action->plan->step;
      } else if (failure_.ok()) {
        failure_ = std::move(status);
      }
      changed_.notify_all();
    } else if (home_.is_idle() && !work_.empty()) {
      work_.carry_out(failure_, lock, changed_);
    } else if (home_.is_idle() && stop_) {
      return;
    } else if (!awake_) {
      changed_.wait(lock);
    }
  }
}

Status MoverThread::carry_out(const Mover::Action& action) {
  const Mover::Plan& plan = action.plan;
  switch (action.act) {
    case Mover::Act::fetch:
      fetched_ += std::ssize(plan->fetch);
      home_.fetch_for(plan->step, plan->fetch, plan->fence);
      return {};
    case Mover::Act::fill:
      return slots_->fill(plan->step, plan->fetch, home_.take_rows(plan->step));
    case Mover::Act::leave:
      return leave(plan);
  }
  RECMILL_CHECK(false, "an act of a mover");
}

Status MoverThread::leave(const Mover::Plan& plan) {
  RECMILL_RETURN_IF_ERROR(slots_->wait_for_end(plan->step));
  SlotStates& states = slots_->states();
  std::vector<RowInSlot> updated;
  for (const RowInSlot& row : plan->evict)
    if (states.is_updated(row)) updated.push_back(row);
  RowRecords records(tables_, records_, updated);
  RECMILL_RETURN_IF_ERROR(slots_->read(updated, records));
  for (const RowInSlot& row : plan->evict) states.empty(row);
  written_back_ += std::ssize(updated);
  home_.leave_after(plan->step, std::move(records));
  return {};
}

void MoverThread::take_answers(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const auto came = home_.take_answers();
  lock.lock();
  for (const int64_t step : came) mover_.came(step);
  if (failure_.ok()) failure_ = home_.failure();
  changed_.notify_all();
}

}  // namespace recmill::store
