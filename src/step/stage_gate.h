// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "step/stage_clock.h"
#include "step/stage_listener.h"

namespace recmill::train {

/// Where the thread that trains says which stage of a step it enters: the clock hears it, and
/// whoever else listens. A step is from Stage::data to the next one.
class StageGate {
 public:
  explicit StageGate(const Communicator& communicator)
      : clock_(std::make_shared<StageClock>(communicator)), listeners_{clock_} {}

  /// The stage before ends here. Nothing while a stage is held.
  void enter(Stage stage) {
    if (held_) return;
    for (const auto& listener : listeners_) listener->enter(stage);
  }
  /// Enters a stage and stays in it, whatever is entered, until release().
  void hold(Stage stage) {
    enter(stage);
    held_ = true;
  }
  void release(Stage next) {
    held_ = false;
    enter(next);
  }

  /// `listener` hears of stages from the next one on.
  void add(std::shared_ptr<StageListener> listener) { listeners_.push_back(std::move(listener)); }
  StageClock& clock() { return *clock_; }

 private:
  const std::shared_ptr<StageClock> clock_;
  std::vector<std::shared_ptr<StageListener>> listeners_;
  bool held_ = false;
};

}  // namespace recmill::train
