// SPDX-License-Identifier: Apache-2.0
#include "step/stage_clock.h"

#include <algorithm>

#include "base/json/json.h"

namespace recmill::train {
namespace {

constexpr size_t kSteps = 12;  // of which report() tells
constexpr size_t kSpans = 64;  // of a step; whoever enters no Stage::data has no steps

}  // namespace

StageClock::StageClock(const Communicator& communicator)
    : communicator_(&communicator), traffic_(communicator.traffic()) {}

void StageClock::restart() {
  *this = StageClock(*communicator_);
}

void StageClock::enter(Stage stage) {
  const double now = watch_.seconds();
  const Traffic traffic = this->traffic();
  Figures& of = figures_[static_cast<size_t>(stage_)];
  const double waiting = traffic.seconds - traffic_.seconds;
  of.seconds += now - since_;
  of.traffic.seconds += waiting;
  of.traffic.sent += traffic.sent - traffic_.sent;
  of.traffic.received += traffic.received - traffic_.received;
  if (step_.size() < kSpans) step_.push_back({stage_, since_, now, waiting});
  stage_ = stage;
  since_ = now;
  traffic_ = traffic;
  if (stage == Stage::data) end_step();
  if (stage == Stage::evaluation) disturb();
}

void StageClock::end_step() {
  const bool trained = std::ranges::any_of(
      step_, [](const StageSpan& span) { return span.stage == Stage::dense_layers; });
  if (trained && !disturbed_ && warm_) {
    steps_.push_back(std::move(step_));
    if (steps_.size() > kSteps) steps_.pop_front();
  }
  warm_ = warm_ || trained;
  step_.clear();
  disturbed_ = false;
}

void StageClock::disturb() {
  disturbed_ = true;
  if (!steps_.empty() && steps_.size() >= kept_.size()) kept_ = std::move(steps_);
  steps_.clear();
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
  const Steps& steps = steps_.empty() || steps_.size() < kept_.size() ? kept_ : steps_;
  for (const auto& step : steps)
    for (const StageSpan& span : step)
      spans.push_back(
          {kStageNames[static_cast<size_t>(span.stage)], span.begin, span.end, span.waiting});
  return {{"seconds", since_},
          {"stages", std::move(stages)},
          {"steps", steps.size()},
          {"spans", std::move(spans)}};
}

}  // namespace recmill::train
