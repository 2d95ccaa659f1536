// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "train/train_options.h"

namespace recmill::train {

/// Counts evaluations without gain; its state travels in checkpoints.
struct EarlyStop {
  std::optional<double> best;
  int64_t without_gain = 0;
  int64_t counted = 0;  // iteration of the last evaluation that was counted
  bool operator==(const EarlyStop&) const = default;

  bool stopped(const EarlyStopOptions& options) const {
    return options.patience > 0 && without_gain >= options.patience;
  }

  /// Takes the value of options.metric (larger is better unless `smaller_is_better`) at the
  /// evaluation after `iteration` and says whether training stops here. An evaluation that a
  /// resumed run repeats counts once.
  bool after(const EarlyStopOptions& options, bool smaller_is_better, int64_t iteration,
             double value) {
    if (options.patience == 0 || iteration <= counted) return stopped(options);
    counted = iteration;
    const double gain = best ? (smaller_is_better ? *best - value : value - *best) : 1.0;
    if (!best || gain > options.minimum_gain) {
      best = value;
      without_gain = 0;
      return false;
    }
    ++without_gain;
    return stopped(options);
  }
};

}  // namespace recmill::train
