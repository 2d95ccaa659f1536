// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "preprocess/run/preprocessor.h"
#include "step/data/schedule_keeper.h"
#include "step/early_stop.h"
#include "step/metrics/sample_window.h"
#include "step/rank_batch.h"

namespace recmill::train {

/// What travels in a checkpoint beside rows and parameters.
struct LoopState {
  StreamPosition position;
  preprocess::DictionaryVersions dictionaries;
  EarlyStop early_stop;
  std::optional<ScheduleProgress>
      schedule;                        // where hot and cold batches are apart, after the first
  std::optional<BestEvaluation> best;  // with train.checkpoint.keep_best: the one that is kept
  metrics::WindowContents window;      // of rank 0; filled in when saved and restored
  bool operator==(const LoopState&) const = default;
};

}  // namespace recmill::train
