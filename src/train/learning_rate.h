// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "train/train_options.h"

namespace recmill::train {

/// What multiplies every learning rate at `iteration` (from 0): warm-up, then decay. A pure
/// function.
///   warm-up: start + (1 - start) (i + 1) / iterations, while i < iterations
///   decay:   from 1 at decay.start to decay.end at decay.start + decay.iterations, and so on after
///   it
double learning_rate_scale(const WarmupOptions& warmup, const DecayOptions& decay,
                           int64_t iteration);

}  // namespace recmill::train
