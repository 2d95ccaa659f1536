// SPDX-License-Identifier: Apache-2.0
// Which evaluation is the best so far, and when training has gained nothing for too long.
#pragma once

#include <cstdint>
#include <optional>

#include "step/metrics/metrics.h"
#include "step/train_options.h"

namespace recmill::train {

/// None: the evaluated rows do not define it.
std::optional<double> value_of(const metrics::Metrics& metrics, StopMetric metric);

/// By how much `value` is better than `than`; below 0: it is worse.
double gain(StopMetric metric, double value, double than);

/// The best evaluation so far, of those that define the metric; its state travels in checkpoints.
struct BestEvaluation {
  double value = 0.0;
  int64_t iteration = 0;
  bool operator==(const BestEvaluation&) const = default;
};

/// Takes the evaluation after `iteration` into `best` if it is better than that, or the first one,
/// and says whether it was. An evaluation that a resumed run repeats is no better than it was.
bool take_if_better(StopMetric metric, std::optional<double> value, int64_t iteration,
                    std::optional<BestEvaluation>& best);

/// Counts evaluations without gain; its state travels in checkpoints.
struct EarlyStop {
  std::optional<double> best;
  int64_t without_gain = 0;
  int64_t counted = 0;  // iteration of the last evaluation that was counted
  bool operator==(const EarlyStop&) const = default;

  bool stopped(const EarlyStopOptions& options) const {
    return options.patience > 0 && without_gain >= options.patience;
  }

  /// Takes the value of options.metric at the evaluation after `iteration`, none being no gain, and
  /// says whether training stops here. An evaluation that a resumed run repeats counts once.
  bool after(const EarlyStopOptions& options, int64_t iteration, std::optional<double> value);
};

}  // namespace recmill::train
