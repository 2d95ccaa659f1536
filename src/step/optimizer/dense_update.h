// SPDX-License-Identifier: Apache-2.0
// The formulas of dense_optimizer.h over neighbouring elements, in vectors of each instruction set.
#pragma once

#include <cstdint>

#include "step/optimizer/dense_formulas.h"
#include "step/optimizer/optimizer_options.h"

namespace recmill::train {

struct Elements {
  float* parameters;
  const float* gradient;
  float* first_state;   // or null
  float* second_state;  // or null
};

void update(DenseOptimizerKind kind, const StepConstants& constants, const Elements& elements,
            int64_t count);

}  // namespace recmill::train
