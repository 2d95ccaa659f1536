// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.h"
#include "batch/step_plan.h"
#include "step/rank_batch.h"

namespace recmill::train {

/// What a window asks for the plans of its batches. It sees the batches of the stream in order,
/// each one step, before any of them has to have a plan.
class StepPlanner {
 public:
  virtual ~StepPlanner() = default;

  /// Steps that have to be seen before one is planned, itself left out, at most.
  virtual int64_t ahead() const = 0;
  virtual Status see(const RankBatch& batch) = 0;
  /// No step follows.
  virtual void end() = 0;
  /// After end(), once all steps so far are planned: some follow all the same.
  virtual void go_on() = 0;
  /// Whether the steps that were seen are planned where reading then fails.
  virtual bool outlives_failure() const { return true; }
  /// Adds to the plan of the next step what was decided; false: more steps have to be seen first.
  virtual Result<bool> plan(StepPlan& plan) = 0;
};

}  // namespace recmill::train
