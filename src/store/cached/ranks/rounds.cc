// SPDX-License-Identifier: Apache-2.0
#include "store/cached/ranks/rounds.h"

#include <string>
#include <utility>

#include "base/status.h"

namespace recmill::store {

void Rounds::plan(Plan plan) {
  RECMILL_CHECK(plan->step == first_ + std::ssize(plans_), std::to_string(plan->step));
  plans_.push_back(std::move(plan));
}

void Rounds::begin(int64_t prefetch) {
  has_begun_ = true;
  rest_is_needed_ = prefetch == 0;
}

bool Rounds::awaits_beginning(int64_t step) const {
  const Plan plan = planned(step);
  return plan != nullptr && plan->begins && began_ < step;
}

bool Rounds::is_ready(int64_t step) const {
  if (awaits_beginning(step)) return false;
  if (rest_ >= step - 1) return true;
  if (rest_ == kNone) return false;
  if (waits_.step_for_rest && (rest_ < step - 2 || rest_is_needed_)) return false;
  return !waits_.step_for_first || critical_ == step - 1 || !plans_.front()->any_critical;
}

std::optional<Rounds::Round> Rounds::next() const {
  if (!has_begun_ || plans_.empty()) return std::nullopt;
  const Plan& plan = plans_.front();
  if (rest_ == kNone || awaits_beginning(plan->step)) return Round{Kind::before, plan};
  if (waits_.round_for_end && done_ < plan->step) return std::nullopt;
  const bool first = plan->any_critical && critical_ < plan->step;
  return Round{first ? Kind::critical : Kind::rest, plan};
}

void Rounds::carried_out(const Round& round) {
  switch (round.kind) {
    case Kind::before:
      rest_ = round.plan->step - 1;
      began_ = round.plan->step;
      break;
    case Kind::critical:
      critical_ = round.plan->step;
      break;
    case Kind::rest:
      rest_ = round.plan->step;
      plans_.pop_front();
      ++first_;
      break;
  }
}

}  // namespace recmill::store
