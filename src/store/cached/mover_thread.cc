// SPDX-License-Identifier: Apache-2.0
#include "store/cached/mover_thread.h"

#include <utility>

namespace recmill::store {
namespace {

constexpr int64_t kPutsOfAStep = int64_t{1} << 32;  // at most

}  // namespace

MoverThread::MoverThread(const SlotTables& tables, std::span<const table::RowRecord> records,
                         table::RowHome& home)
    : tables_(tables), records_(records), home_(home) {
  home_.set_wake([this] {
    std::lock_guard lock(mutex_);
    awake_ = true;
    changed_.notify_all();
  });
  thread_ = std::thread([this] { run(); });
}

MoverThread::~MoverThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
  home_.set_wake(nullptr);
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

void MoverThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (std::exchange(awake_, false)) {
      lock.unlock();
      take_answers();
      lock.lock();
    }
    mover_.done(done_);
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
    } else if (calls_.empty() && !work_.empty()) {
      work_.carry_out(failure_, lock, changed_);
    } else if (calls_.empty() && stop_) {
      return;
    } else if (!awake_) {
      changed_.wait(lock);
    }
  }
}

Status MoverThread::carry_out(const Mover::Action& action) {
  switch (action.act) {
    case Mover::Act::fetch:
      fetch_planned(action.plan);
      return {};
    case Mover::Act::fill:
      return fill(action.plan);
    case Mover::Act::leave:
      return leave(action.plan);
  }
  RECMILL_CHECK(false, "an act of a mover");
}

void MoverThread::fetch_planned(const Mover::Plan& plan) {
  Call call{RowRecords(tables_, records_, plan->fetch), plan->step};
  const auto lists = call.rows.to_fetch();
  const int64_t fence = plan->fence < 0 ? table::RowHome::kNoFence : step_at_home(plan->fence);
  fetched_ += std::ssize(plan->fetch);
  const auto ticket = home_.fetch(lists, fence);
  calls_.emplace(ticket, std::move(call));
}

Status MoverThread::fill(const Mover::Plan& plan) {
  const auto rows = came_.extract(plan->step);
  return slots_->fill(plan->step, plan->fetch, rows.mapped());
}

Status MoverThread::leave(const Mover::Plan& plan) {
  RECMILL_RETURN_IF_ERROR(slots_->wait_for_end(plan->step));
  SlotStates& states = slots_->states();
  std::vector<RowInSlot> updated;
  for (const RowInSlot& row : plan->evict)
    if (states.is_updated(row)) updated.push_back(row);
  Call call{RowRecords(tables_, records_, updated)};
  RECMILL_RETURN_IF_ERROR(slots_->read(updated, call.rows));
  for (const RowInSlot& row : plan->evict) states.empty(row);
  written_back_ += std::ssize(updated);
  unplanned_ = 0;
  const auto lists = call.rows.to_put();
  const auto ticket = home_.put(lists, step_at_home(plan->step));
  calls_.emplace(ticket, std::move(call));
  return {};
}

/// Of planned fetches and puts at once; of others for those who wait.
void MoverThread::take_answers() {
  std::vector<table::RowHome::Answer> some;
  home_.poll(some);
  std::lock_guard lock(mutex_);
  for (table::RowHome::Answer& answer : some) {
    auto call = calls_.extract(answer.ticket);
    if (call.empty()) {
      answers_[answer.ticket] = std::move(answer);
      continue;
    }
    if (!answer.status.ok() && failure_.ok()) failure_ = answer.status;
    if (call.mapped().step < 0 || !failure_.ok()) continue;
    mover_.came(call.mapped().step);
    came_.emplace(call.mapped().step, std::move(call.mapped().rows));
  }
  changed_.notify_all();
}

Result<table::RowHome::Answer> MoverThread::wait_for(table::RowHome::Ticket ticket) {
  std::unique_lock lock(mutex_);
  while (answers_.count(ticket) == 0) {
    changed_.wait(lock, [&] { return awake_; });
    awake_ = false;
    lock.unlock();
    take_answers();
    lock.lock();
  }
  auto answer = std::move(answers_.extract(ticket).mapped());
  if (!answer.status.ok()) return answer.status;
  return answer;
}

Status MoverThread::fetch(RowRecords& rows) {
  const auto lists = rows.to_fetch();
  return wait_for(home_.fetch(lists, table::RowHome::kNoFence)).status();
}

Status MoverThread::put(const RowRecords& rows) {
  const auto lists = rows.to_put();
  return wait_for(home_.put(lists, next_step_at_home())).status();
}

Result<std::shared_ptr<table::RowSnapshot>> MoverThread::cut() {
  RECMILL_ASSIGN_OR_RETURN(auto answer,
                           wait_for(home_.cut(step_at_home(mover_.left()) + unplanned_)));
  return std::move(answer.image);
}

int64_t MoverThread::step_at_home(int64_t step) const {
  return (step + 1) * kPutsOfAStep;
}

int64_t MoverThread::next_step_at_home() {
  return step_at_home(mover_.left()) + ++unplanned_;
}

}  // namespace recmill::store
