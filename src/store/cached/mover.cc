// SPDX-License-Identifier: Apache-2.0
#include "store/cached/mover.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/status.h"

namespace recmill::store {

void Mover::plan(Plan plan) {
  RECMILL_CHECK(plan->step == first_ + std::ssize(plans_), std::to_string(plan->step));
  plans_.push_back({std::move(plan)});
}

void Mover::came(int64_t step) {
  RECMILL_CHECK(step > filled_ && step <= fetched_, std::to_string(step));
  plans_[static_cast<size_t>(step - first_)].came = true;
}

const Mover::Planned* Mover::planned(int64_t step) const {
  const auto at = static_cast<size_t>(step - first_);
  return at < plans_.size() ? &plans_[at] : nullptr;
}

bool Mover::can_fill(const Planned& step) const {
  if (fetched_ < step.plan->step || (waits_.fill_for_rows && !step.came)) return false;
  return !waits_.fill_for_slots || left_ >= step.plan->filled_after;
}

// What training waits for comes first; then what takes longest to come.
std::optional<Mover::Action> Mover::next(bool fetches) const {
  if (const Planned* step = planned(filled_ + 1); step != nullptr && can_fill(*step))
    return Action{Act::fill, step->plan};
  if (const Planned* step = planned(fetched_ + 1);
      fetches && step != nullptr && (!waits_.fetch_for_room || done_ >= step->plan->filled_after))
    return Action{Act::fetch, step->plan};
  if (const Planned* step = planned(left_ + 1);
      step != nullptr && filled_ > left_ && (!waits_.leave_for_end || done_ > left_))
    return Action{Act::leave, step->plan};
  return std::nullopt;
}

void Mover::carried_out(const Action& action) {
  switch (action.act) {
    case Act::fetch:
      fetched_ = action.plan->step;
      break;
    case Act::fill:
      filled_ = action.plan->step;
      break;
    case Act::leave:
      left_ = action.plan->step;
      break;
  }
  for (; first_ <= std::min(filled_, left_); ++first_) plans_.pop_front();
}

}  // namespace recmill::store
