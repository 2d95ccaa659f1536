// SPDX-License-Identifier: Apache-2.0
// What a rank spends its time on, by the stages of an iteration.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json/json_fwd.h"
#include "comm/communicator.h"
#include "step/stage_listener.h"

namespace recmill::train {

/// One stage of one iteration, in seconds since the clock's start.
struct StageSpan {
  Stage stage = Stage::data;
  double begin = 0.0, end = 0.0;
  double waiting = 0.0;  // of it, in calls of the communicator
};

/// Attributes the time of the thread that trains, and the traffic of its communicator, to stages.
/// Costs two looks at a clock a stage.
class StageClock final : public StageListener {
 public:
  struct Figures {
    double seconds = 0.0;
    Traffic traffic;
    double hidden = 0.0;  // seconds that took work beside other stages, none of `seconds`
  };

  explicit StageClock(const Communicator& communicator);

  /// Begins anew, in Stage::data. When all ranks do so together, their spans can be laid side by
  /// side.
  void restart();

  /// An evaluation disturbs.
  void enter(Stage stage) override;
  /// The step that is under way is no steady one: a checkpoint is begun, say. What report() tells
  /// of steady steps are the last ones without such a step, or an evaluation, between them.
  void disturb();
  /// What went on beside other stages, on another thread, for the one that is entered: `seconds` in
  /// all, of which the thread that trains waited traffic.seconds.
  void add(const Traffic& traffic, double seconds);

  const Figures& figures(Stage stage) const { return figures_[static_cast<size_t>(stage)]; }
  /// {"seconds", "stages": {name: {"seconds", "waiting", "hidden", "sent", "received"}},
  /// "steps", "spans": [[stage, begin, end, waiting]]}: the data stage is all waiting; the spans
  /// are those of so many steady steps, the same on ranks that were disturbed in the same steps.
  /// The first step is none: whatever is used for the first time takes longer.
  Json report() const;

 private:
  /// Steps that follow each other.
  using Steps = std::deque<std::vector<StageSpan>>;

  Traffic traffic() const;
  void end_step();

  const Communicator* communicator_;
  Traffic beside_;  // of other communicators
  Stopwatch watch_;
  Stage stage_ = Stage::data;
  double since_ = 0.0;
  Traffic traffic_;  // at since_
  std::array<Figures, kStageNames.size()> figures_{};
  std::vector<StageSpan> step_;  // that is under way
  bool warm_ = false;            // a step has trained
  bool disturbed_ = false;       // since it began
  Steps steps_, kept_;           // since the last disturbance, and the most before one
};

}  // namespace recmill::train
