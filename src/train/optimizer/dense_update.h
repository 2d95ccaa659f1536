// SPDX-License-Identifier: Apache-2.0
// The formulas of dense_optimizer.h over neighbouring elements, in vectors of each instruction set.
#pragma once

#include <cstdint>

#include "train/optimizer/optimizer_options.h"

namespace recmill::train {

/// The constants of one step in float32, as the formulas use them.
struct StepConstants {
  float learning_rate, clip, weight_decay, momentum, epsilon, beta1, beta2, correction1,
      correction2;
};

struct Elements {
  float* parameters;
  const float* gradient;
  float* first_state;   // or null
  float* second_state;  // or null
};

void update(DenseOptimizerKind kind, const StepConstants& constants, const Elements& elements,
            int64_t count);

}  // namespace recmill::train
