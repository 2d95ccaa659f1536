// SPDX-License-Identifier: Apache-2.0
#include "hotset/hot_cold_order.h"

#include <algorithm>

#include "base/status.h"

namespace recmill::hotset {
namespace {

/// `place`, whose schedule is over, at the next one.
bool advance(const RatePolicy& policy, OrderPlace& place) {
  const auto next = policy.next(place.state);
  if (!next) return false;
  if (place.state.ends_epoch()) place.trained = {};
  place.state = *next;
  return true;
}

}  // namespace

ScheduleState RatePolicy::first() const {
  if (!repeated.empty()) return first_schedule(repeated.begin()->second);
  return first_schedule(fixed ? *fixed : *Percent::of(kFirstRate));
}

std::optional<ScheduleState> RatePolicy::next(const ScheduleState& state) const {
  if (repeated.empty()) return next_schedule(state);
  const auto of_next = repeated.lower_bound(state.schedule + 1);
  if (of_next == repeated.end()) return std::nullopt;
  ScheduleState with_rate = state;
  with_rate.rate = of_next->second;
  return next_schedule(with_rate);
}

std::optional<BatchKind> OrderPlace::kind(const HotBatches& epoch, bool hot_first) const {
  const HotBatches end = state.end(epoch);
  const bool cold = trained.cold < end.cold, hot = trained.hot < end.hot;
  if (!cold && !hot) return std::nullopt;
  return hot && (hot_first || !cold) ? BatchKind::hot : BatchKind::cold;
}

HotColdOrder::HotColdOrder(const HotBatches& epoch, RatePolicy policy, const OrderPlace& place)
    : epoch_(epoch), policy_(std::move(policy)), place_(place) {
  RECMILL_CHECK(epoch_.cold + epoch_.hot > 0);
}

HotColdOrder::Step HotColdOrder::take(BatchKind kind, HotBatches& count) {
  ++(kind == BatchKind::hot ? count.hot : count.cold);
  return kind == BatchKind::hot ? Step::hot : Step::cold;
}

bool HotColdOrder::go_on(OrderPlace& place) const {
  do {
    if (!advance(policy_, place)) return false;
  } while (place.is_over(epoch_));
  return true;
}

HotColdOrder::Step HotColdOrder::next() {
  if (waits_) return next_of_any_rate();
  if (const auto kind = place_.kind(epoch_, policy_.hot_first)) return take(*kind, place_.trained);
  if (!policy_.adapts() || place_.state.judged) {
    OrderPlace next = place_;
    if (!go_on(next)) return Step::missing;
    place_ = next;
    return take(*place_.kind(epoch_, policy_.hot_first), place_.trained);
  }
  waits_ = true;
  ahead_ = {};
  may_follow_.clear();
  const Percent rate = place_.state.rate;
  std::vector<Percent> rates{rate};
  if (place_.state.last_loss) rates = {rate.half(), rate, rate.twice()};
  for (const Percent may_be : rates) {
    may_follow_.push_back(place_);
    may_follow_.back().state.rate = may_be;
    go_on(may_follow_.back());
  }
  return Step::judge;
}

HotColdOrder::Step HotColdOrder::next_of_any_rate() {
  std::optional<BatchKind> shared;
  for (OrderPlace& place : may_follow_) {
    const auto kind = place.kind(epoch_, policy_.hot_first);
    if (!kind || (shared && *shared != *kind)) return Step::unknown;
    shared = kind;
  }
  for (OrderPlace& place : may_follow_) take(*shared, place.trained);
  return take(*shared, ahead_);
}

void HotColdOrder::judge(const ScheduleState& judged) {
  RECMILL_CHECK(waits_ && judged.schedule == place_.state.schedule && judged.judged);
  waits_ = false;
  place_.state = judged;
  go_on(place_);
  place_.trained.cold += ahead_.cold;
  place_.trained.hot += ahead_.hot;
}

bool HotColdOrder::ends_epoch() const {
  const HotBatches& trained = waits_ ? may_follow_[0].trained : place_.trained;
  return trained.cold == epoch_.cold && trained.hot == epoch_.hot;
}

void ScheduleFollower::trained(BatchKind kind) {
  if (place_.is_over(epoch_)) {
    do {
      RECMILL_CHECK(advance(policy_, place_));
    } while (place_.is_over(epoch_));
    begun_ = place_.trained;
  }
  RECMILL_CHECK(place_.kind(epoch_, policy_.hot_first) == kind);
  ++(kind == BatchKind::hot ? place_.trained.hot : place_.trained.cold);
}

}  // namespace recmill::hotset
