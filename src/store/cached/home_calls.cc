// SPDX-License-Identifier: Apache-2.0
#include "store/cached/home_calls.h"

#include <algorithm>
#include <utility>

namespace recmill::store {

using table::RowHome;

HomeCalls::HomeCalls(const SlotTables& tables, std::span<const table::RowRecord> records,
                     const CacheHomeRows& of, std::function<void()> wake)
    : tables_(tables), records_(records), home_(of.home), steps_(of.begin) {
  home_->set_wake([this, wake = std::move(wake)] {
    {
      std::lock_guard lock(mutex_);
      is_awake_ = true;
      woken_.notify_all();
    }
    wake();
  });
}

HomeCalls::~HomeCalls() {
  home_->set_wake(nullptr);
  home_.reset();  // before what it would write to
  for (auto& [ticket, call] : calls_)
    if (call.image != nullptr)
      call.image->set_value(Status::Failed("the image was not whole when training ended"));
}

RowHome::Ticket HomeCalls::called(RowHome::Ticket ticket, Call call) {
  calls_.emplace(ticket, std::move(call));
  return ticket;
}

void HomeCalls::fetch_for(int64_t step, std::span<const RowInSlot> rows, int64_t fence) {
  Call call{RowRecords(tables_, records_, rows), step};
  const auto lists = call.rows.to_fetch();
  called(home_->fetch(lists, steps_.of(fence)), std::move(call));
}

void HomeCalls::leave_after(int64_t step, RowRecords updated) {
  const auto lists = updated.to_put();
  called(home_->put(lists, steps_.left(step)), {std::move(updated)});
}

ComingImage HomeCalls::cut(RowRecords changed) {
  Call call{std::move(changed)};
  call.image_step = steps_.next_cut();
  call.image = std::make_shared<std::promise<Result<HomeImage>>>();
  ComingImage image = call.image->get_future();
  const auto lists = call.rows.to_put();
  called(home_->cut(call.image_step, lists), std::move(call));
  return image;
}

std::vector<int64_t> HomeCalls::take_answers() {
  std::vector<RowHome::Answer> some;
  home_->poll(some);
  for (RowHome::Answer& answer : some) take(answer);
  return std::exchange(told_, {});
}

void HomeCalls::take(RowHome::Answer& answer) {
  Call call = std::move(calls_.extract(answer.ticket).mapped());
  if (call.image != nullptr) {
    if (answer.status.ok())
      call.image->set_value(HomeImage{call.image_step, std::move(answer.image)});
    else
      call.image->set_value(answer.status);
  }
  if (call.waits != nullptr) {
    *call.waits = std::move(answer.status);
    *call.is_answered = true;
    return;
  }
  if (!answer.status.ok() && failure_.ok()) failure_ = answer.status;
  if (!call.step || !failure_.ok()) return;
  came_.emplace(*call.step, std::move(call.rows));
  told_.push_back(*call.step);
}

RowRecords HomeCalls::take_rows(int64_t step) {
  return std::move(came_.extract(step).mapped());
}

/// Until the home has woken this, and takes what is there.
void HomeCalls::wait() {
  {
    std::unique_lock lock(mutex_);
    woken_.wait(lock, [&] { return is_awake_; });
    is_awake_ = false;
  }
  std::vector<RowHome::Answer> some;
  home_->poll(some);
  for (RowHome::Answer& answer : some) take(answer);
}

Result<RowRecords> HomeCalls::wait_for_rows(int64_t step) {
  while (came_.count(step) == 0 && failure_.ok()) wait();
  if (!failure_.ok()) return failure_;
  std::erase(told_, step);
  return take_rows(step);
}

Status HomeCalls::wait_for(RowHome::Ticket ticket) {
  Status status;
  bool is_answered = false;
  Call call{RowRecords(tables_, records_, {})};
  call.waits = &status;
  call.is_answered = &is_answered;
  called(ticket, std::move(call));
  while (!is_answered) wait();
  return status;
}

Status HomeCalls::fetch(RowRecords& rows) {
  const auto lists = rows.to_fetch();
  return wait_for(home_->fetch(lists, RowHome::kNoFence));
}

Status HomeCalls::put(const RowRecords& rows) {
  const auto lists = rows.to_put();
  return wait_for(home_->put(lists, steps_.next_put()));
}

void HomeCalls::drop_fetches() {
  for (auto& [ticket, call] : calls_) call.step.reset();
  came_.clear();
  told_.clear();
}

Status HomeCalls::wait_for_cuts() {
  const auto is_cut = [](const auto& call) { return call.second.image != nullptr; };
  while (failure_.ok() && std::ranges::any_of(calls_, is_cut)) wait();
  return failure_;
}

}  // namespace recmill::store
