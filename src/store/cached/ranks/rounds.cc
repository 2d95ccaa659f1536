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

bool Rounds::is_ready(int64_t step) const {
  if (rest_ >= step - 1) return true;
  if (rest_ == kNone) return false;
  if (waits_.step_for_rest && (rest_ < step - 2 || rest_is_needed_)) return false;
  return !waits_.step_for_first || critical_ == step - 1 || !plans_.front()->any_critical;
}

std::optional<Rounds::Round> Rounds::next() const {
  if (!has_begun_ || plans_.empty()) return std::nullopt;
  const Plan& plan = plans_.front();
  if (rest_ == kNone) return Round{Kind::before, plan};
  if (waits_.round_for_end && done_ < plan->step) return std::nullopt;
  const bool first = plan->any_critical && critical_ < plan->step;
  return Round{first ? Kind::critical : Kind::rest, plan};
}

void Rounds::carried_out(const Round& round) {
  switch (round.kind) {
    case Kind::before:
      rest_ = -1;
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
