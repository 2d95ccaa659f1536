// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "base/status.h"
#include "step/data/step_planner.h"
#include "step/rank_batch.h"

namespace recmill::train {

/// The batches between their source and the store: preprocessed, not prepared. They leave in order,
/// each with its plan, once `ahead` more have come, or as many as its planner asks for, or the
/// stream has ended. No thread, no clock: what it hands out follows from what it was given.
class BatchWindow {
 public:
  explicit BatchWindow(int64_t ahead) : ahead_(ahead) {}
  explicit BatchWindow(std::unique_ptr<StepPlanner> planner)
      : ahead_(planner->ahead()), planner_(std::move(planner)) {}

  /// Batches that it holds, at most, beside the one that leaves.
  int64_t ahead() const { return ahead_; }
  Status add(std::unique_ptr<RankBatch> batch);
  /// No batch follows.
  void end();
  /// What follows is not known before those that it holds are trained: they leave as if nothing
  /// did; then it goes on.
  void pause() { end(); }
  void go_on();
  /// Whether its batches leave where reading fails behind them.
  bool outlives_failure() const { return planner_ == nullptr || planner_->outlives_failure(); }
  /// The oldest batch, with its plan; null: more have to come first, or none is left. Requests have
  /// no plan: they are no step of the stream.
  Result<std::unique_ptr<RankBatch>> take();

 private:
  Result<bool> may_leave(StepPlan& plan);

  const int64_t ahead_;
  std::unique_ptr<StepPlanner> planner_;  // null: plans say steps alone
  bool ended_ = false;
  int64_t step_ = 0;  // of the next batch that leaves
  std::deque<std::unique_ptr<RankBatch>> batches_;
};

}  // namespace recmill::train
