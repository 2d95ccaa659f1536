// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>

#include "base/host_device.h"
#include "schema/row_optimizer_options.h"
#include "table/optimizers/row_step.h"
#include "table/optimizers/state_name.h"

namespace recmill::table {

/// Adagrad (Duchi, Hazan, Singer, JMLR 2011), by element. State: sum_of_squares, from
/// initial_accumulator. Epsilon is added to the root:
///   sum = sum + gradient * gradient
///   weight = weight - (learning_rate * gradient) / (sqrt(sum) + epsilon)
/// At learning rate 0 the weight keeps its bits (row_formulas.h).
struct Adagrad {
  static constexpr int kElementColumns = 1;
  static constexpr bool kRowState = false;
  static constexpr int kFactors = 0;
  static constexpr std::array<StateName, 1> kState{{{"sum_of_squares", true}}};
  float learning_rate;
  float epsilon;

  static Adagrad at(const RowOptimizerOptions& options, const RowStep& step) {
    return {static_cast<float>(options.learning_rate * step.learning_rate_scale),
            static_cast<float>(options.epsilon)};
  }

  RECMILL_HOST_DEVICE void element(float& weight, float* state, float gradient,
                                   const float*) const {
    state[0] = state[0] + gradient * gradient;
    const float moved = weight - (learning_rate * gradient) / (std::sqrt(state[0]) + epsilon);
    weight = learning_rate == 0.0f ? weight : moved;
  }
};

}  // namespace recmill::table
