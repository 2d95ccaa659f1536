// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "step/train_options.h"

namespace recmill::train {

/// How learning rates change over a run.
struct LearningRate {
  WarmupOptions warmup;
  DecayOptions decay;

  /// What multiplies every learning rate at `iteration` (from 0): warm-up, then decay. A pure
  /// function.
  ///   warm-up: start + (1 - start) (i + 1) / iterations, while i < iterations
  ///   decay:   from 1 at decay.start to decay.end at decay.start + decay.iterations, and so on
  ///            after it
  double scale(int64_t iteration) const;
};

/// Of a run over `rows` training rows, all of which are used: a decay whose iterations are 0 ends
/// with the run.
LearningRate learning_rate_of(const TrainOptions& train, int64_t rows);

/// Whether learning_rate_of() looks at its `rows`.
bool decays_to_the_end(const TrainOptions& train);

}  // namespace recmill::train
