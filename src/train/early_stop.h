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
  bool operator==(const EarlyStop&) const = default;

  /// Takes the value of options.metric (larger is better unless `smaller_is_better`) and says
  /// whether training stops here.
  bool after(const EarlyStopOptions& options, bool smaller_is_better, double value) {
    if (options.patience == 0) return false;
    const double gain = best ? (smaller_is_better ? *best - value : value - *best) : 1.0;
    if (!best || gain > options.minimum_gain) {
      best = value;
      without_gain = 0;
      return false;
    }
    return ++without_gain >= options.patience;
  }
};

}  // namespace recmill::train
