// SPDX-License-Identifier: Apache-2.0
#include "train/stage_clock.h"

#include <algorithm>

namespace recmill::train {
namespace {

constexpr size_t kSpans = 160;  // about 20 iterations

}  // namespace

StageClock::StageClock(const Communicator& communicator)
    : communicator_(&communicator), traffic_(communicator.traffic()) {}

void StageClock::restart() {
  *this = StageClock(*communicator_);
}

void StageClock::enter(Stage stage) {
  if (held_) return;
  const double now = watch_.seconds();
  const Traffic traffic = this->traffic();
  Figures& of = figures_[static_cast<size_t>(stage_)];
  const double waiting = traffic.seconds - traffic_.seconds;
  of.seconds += now - since_;
  of.traffic.seconds += waiting;
  of.traffic.sent += traffic.sent - traffic_.sent;
  of.traffic.received += traffic.received - traffic_.received;
  spans_.push_back({stage_, since_, now, waiting});
  if (spans_.size() > kSpans) spans_.pop_front();
  stage_ = stage;
  since_ = now;
  traffic_ = traffic;
}

Traffic StageClock::traffic() const {
  Traffic all = communicator_->traffic();
  all.seconds += beside_.seconds;
  all.sent += beside_.sent;
  all.received += beside_.received;
  return all;
}

void StageClock::add(const Traffic& traffic, double seconds) {
  beside_.seconds += traffic.seconds;
  beside_.sent += traffic.sent;
  beside_.received += traffic.received;
  figures_[static_cast<size_t>(stage_)].hidden += std::max(0.0, seconds - traffic.seconds);
}

void StageClock::hold(Stage stage) {
  enter(stage);
  held_ = true;
}

void StageClock::release(Stage next) {
  held_ = false;
  enter(next);
}

Json StageClock::report() const {
  Json stages = Json::object();
  for (size_t s = 0; s < kStageNames.size(); ++s) {
    const Figures& of = figures_[s];
    const bool waits = static_cast<Stage>(s) == Stage::data;
    stages[kStageNames[s]] = {{"seconds", of.seconds},
                              {"waiting", waits ? of.seconds : of.traffic.seconds},
                              {"hidden", of.hidden},
                              {"sent", of.traffic.sent},
                              {"received", of.traffic.received}};
  }
  Json spans = Json::array();
  for (const StageSpan& span : spans_)
    spans.push_back(
        {kStageNames[static_cast<size_t>(span.stage)], span.begin, span.end, span.waiting});
  return {{"seconds", since_}, {"stages", std::move(stages)}, {"spans", std::move(spans)}};
}

}  // namespace recmill::train
