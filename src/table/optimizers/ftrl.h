// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>

#include "base/host_device.h"
#include "kernels/clamp.h"
#include "schema/row_optimizer_options.h"
#include "table/optimizers/row_step.h"
#include "table/optimizers/state_name.h"

namespace recmill::table {

/// FTRL-Proximal (McMahan et al., KDD 2013, algorithm 1), by element. State: sum_of_squares, from
/// initial_accumulator, and linear, from 0, so that the first update of a row lets go of its
/// initial weight. No epsilon: beta smooths the learning rate.
///   sum' = sum + gradient * gradient
///   linear = linear + (gradient - ((sqrt(sum') - sqrt(sum)) / learning_rate) * weight)
///   weight = (clamp(linear, -l1, l1) - linear) / ((beta + sqrt(sum')) / learning_rate + l2)
/// At learning rate 0, by which it divides, weight and state keep their bits; so they do below
/// 2^-100, where quotients may overflow.
struct Ftrl {
  static constexpr int kElementColumns = 2;
  static constexpr bool kRowState = false;
  static constexpr int kFactors = 0;
  static constexpr float kLeastRate = 0x1p-100f;
  static constexpr std::array<StateName, 2> kState{{{"sum_of_squares", true}, {"linear", false}}};
  float learning_rate;
  float l1;
  float l2;
  float beta;

  static Ftrl at(const RowOptimizerOptions& options, const RowStep& step) {
    return {static_cast<float>(options.learning_rate * step.learning_rate_scale),
            static_cast<float>(options.l1), static_cast<float>(options.l2),
            static_cast<float>(options.beta)};
  }

  RECMILL_HOST_DEVICE void element(float& weight, float* state, float gradient,
                                   const float*) const {
    const float before = std::sqrt(state[0]);
    const float sum = state[0] + gradient * gradient;
    const float after = std::sqrt(sum);
    const float linear = state[1] + (gradient - ((after - before) / learning_rate) * weight);
    const float shrunk = kernels::clamp(linear, -l1, l1) - linear;
    const float moved = shrunk / ((beta + after) / learning_rate + l2);
    const bool stays = learning_rate < kLeastRate;
    state[0] = stays ? state[0] : sum;
    state[1] = stays ? state[1] : linear;
    weight = stays ? weight : moved;
  }
};

}  // namespace recmill::table
