// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>

#include "base/host_device.h"
#include "schema/row_optimizer_options.h"
#include "table/optimizers/row_step.h"
#include "table/optimizers/state_name.h"

namespace recmill::table {

/// Adam as adam.h has it, but that the bias of a row's moments is corrected by the number n of its
/// own updates, this one included: a row that is looked up for the first time late in a run moves
/// by the rate, and not by a tenth of it and less. State: first_moment, second_moment, from 0, and
/// updates, one a row, which is n as a float (it stays at 2^24). Powers are made by squaring, and
/// all that is of a row is in float64 and rounded once:
///   first, second: as adam.h
///   weight = weight - (rate * first) / (sqrt(second) * root + epsilon)
///   where rate = learning_rate / (1 - beta1^n), root = 1 / sqrt(1 - beta2^n)
/// At learning rate 0 the weight keeps its bits (row_formulas.h).
struct AdamByRow {
  static constexpr int kElementColumns = 2;
  static constexpr bool kRowState = true;
  static constexpr int kFactors = 2;  // rate, root
  static constexpr std::array<StateName, 3> kState{
      {{"first_moment", false}, {"second_moment", false}, {"updates", false}}};
  double beta1_of_rows;
  double beta2_of_rows;
  double learning_rate;
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float epsilon;

  static AdamByRow at(const RowOptimizerOptions& options, const RowStep& step) {
    return {options.beta1,
            options.beta2,
            options.learning_rate * step.learning_rate_scale,
            static_cast<float>(options.beta1),
            static_cast<float>(1.0 - options.beta1),
            static_cast<float>(options.beta2),
            static_cast<float>(1.0 - options.beta2),
            static_cast<float>(options.epsilon)};
  }

  RECMILL_HOST_DEVICE static double power(double base, unsigned exponent) {
    double product = 1.0;
    for (; exponent > 0; exponent >>= 1) {
      if ((exponent & 1u) != 0) product = product * base;
      base = base * base;
    }
    return product;
  }

  RECMILL_HOST_DEVICE void row(float& updates, float, float* factors) const {
    updates = updates + 1.0f;
    const unsigned n = static_cast<unsigned>(updates);
    factors[0] = static_cast<float>(learning_rate / (1.0 - power(beta1_of_rows, n)));
    factors[1] = static_cast<float>(1.0 / std::sqrt(1.0 - power(beta2_of_rows, n)));
  }

  RECMILL_HOST_DEVICE void element(float& weight, float* state, float gradient,
                                   const float* factors) const {
    state[0] = beta1 * state[0] + one_minus_beta1 * gradient;
    state[1] = beta2 * state[1] + one_minus_beta2 * (gradient * gradient);
    const float moved =
        weight - (factors[0] * state[0]) / (std::sqrt(state[1]) * factors[1] + epsilon);
    weight = factors[0] == 0.0f ? weight : moved;
  }
};

}  // namespace recmill::table
