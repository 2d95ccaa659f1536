// SPDX-License-Identifier: Apache-2.0
// What a rank spends its time on, by the stages of an iteration.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json_lines.h"
#include "comm/communicator.h"

namespace recmill::train {

enum class Stage {
  data,             // waits for the batch that the data stage makes
  lookup,           // rows to bags
  dense_layers,     // forward, loss, and backward
  dense_gradients,  // summed over ranks
  dense_update,
  row_update,  // gradients of rows, to their owners, applied
  scores,      // gathered for metrics, and the agreement to go on
  checkpoint,
  evaluation,  // from lookup to metrics
};
inline constexpr std::array kStageNames{
    "data",       "lookup", "dense layers", "dense gradients", "dense update",
    "row update", "scores", "checkpoint",   "evaluation"};

/// One stage of one iteration, in seconds since the clock's start.
struct StageSpan {
  Stage stage = Stage::data;
  double begin = 0.0, end = 0.0;
  double waiting = 0.0;  // of it, in calls of the communicator
};

/// Attributes the time of the thread that trains, and the traffic of its communicator, to stages.
/// Costs two looks at a clock a stage.
class StageClock {
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

  /// The stage before ends here. Nothing while a stage is held. A step is from Stage::data to the
  /// next one.
  void enter(Stage stage);
  /// The step that is under way is no steady one: a checkpoint is begun, say. What report() tells
  /// of steady steps are the last ones without such a step, or an evaluation, between them.
  void disturb();
  /// Enters a stage and stays in it, whatever is entered, until release(). Disturbs.
  void hold(Stage stage);
  void release(Stage next);
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
  bool held_ = false;
  double since_ = 0.0;
  Traffic traffic_;  // at since_
  std::array<Figures, kStageNames.size()> figures_{};
  std::vector<StageSpan> step_;  // that is under way
  bool warm_ = false;            // a step has trained
  bool disturbed_ = false;       // since it began
  Steps steps_, kept_;           // since the last disturbance, and the most before one
};

}  // namespace recmill::train
