// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>

#include "base/host_device.h"
#include "schema/row_optimizer_options.h"
#include "table/optimizers/row_step.h"
#include "table/optimizers/state_name.h"

namespace recmill::table {

/// Adam (Kingma, Ba, ICLR 2015), lazy: the moments of a row that no lookup of the iteration names
/// stay as they are. State: first_moment, second_moment, from 0. Bias is corrected by the global
/// iteration t = 1, 2, ... (constants in float64, rounded once); epsilon is added to the corrected
/// root:
///   first = beta1 * first + (1 - beta1) * gradient
///   second = beta2 * second + (1 - beta2) * (gradient * gradient)
///   weight = weight - (rate * first) / (sqrt(second) * root + epsilon)
///   where rate = learning_rate / (1 - beta1^t), root = 1 / sqrt(1 - beta2^t)
/// At learning rate 0 the weight keeps its bits (row_formulas.h).
struct Adam {
  static constexpr int kElementColumns = 2;
  static constexpr bool kRowState = false;
  static constexpr int kFactors = 0;
  static constexpr std::array<StateName, 2> kState{
      {{"first_moment", false}, {"second_moment", false}}};
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float rate;
  float root;
  float epsilon;

  static Adam at(const RowOptimizerOptions& options, const RowStep& step) {
    const double t = static_cast<double>(step.iteration) + 1.0;
    const double rate = options.learning_rate * step.learning_rate_scale;
    return {static_cast<float>(options.beta1),
            static_cast<float>(1.0 - options.beta1),
            static_cast<float>(options.beta2),
            static_cast<float>(1.0 - options.beta2),
            static_cast<float>(rate / (1.0 - std::pow(options.beta1, t))),
            static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options.beta2, t))),
            static_cast<float>(options.epsilon)};
  }

  RECMILL_HOST_DEVICE void element(float& weight, float* state, float gradient,
                                   const float*) const {
    state[0] = beta1 * state[0] + one_minus_beta1 * gradient;
    state[1] = beta2 * state[1] + one_minus_beta2 * (gradient * gradient);
    const float moved = weight - (rate * state[0]) / (std::sqrt(state[1]) * root + epsilon);
    weight = rate == 0.0f ? weight : moved;
  }
};

}  // namespace recmill::table
