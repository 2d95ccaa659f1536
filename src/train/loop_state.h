// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "preprocess/run/preprocessor.h"
#include "train/early_stop.h"
#include "train/metrics/sample_window.h"
#include "train/rank_batch.h"

namespace recmill::train {

/// What travels in a checkpoint beside rows and parameters.
struct LoopState {
  StreamPosition position;
  preprocess::DictionaryVersions dictionaries;
  EarlyStop early_stop;
  std::optional<BestEvaluation> best;  // with train.checkpoint.keep_best: the one that is kept
  metrics::WindowContents window;      // of rank 0; filled in when saved and restored
  bool operator==(const LoopState&) const = default;
};

}  // namespace recmill::train
