// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>

#include "base/host_device.h"
#include "schema/row_optimizer_options.h"
#include "table/optimizers/row_step.h"
#include "table/optimizers/state_name.h"

namespace recmill::table {

/// Row-wise Adagrad (Mudigere et al., ISCA 2022, section 4.1.4): one sum for each row, of the mean
/// of its gradient's squares (kernels/row_update/apply_rows.h says in which order), L2 included.
/// State: sum_of_squares, one a row, from initial_accumulator. Epsilon is added to the root:
///   sum = sum + mean(gradient * gradient)
///   weight = weight - (learning_rate / (sqrt(sum) + epsilon)) * gradient
/// At learning rate 0 the weight keeps its bits (row_formulas.h).
struct RowwiseAdagrad {
  static constexpr int kElementColumns = 0;
  static constexpr bool kRowState = true;
  static constexpr int kFactors = 1;
  static constexpr std::array<StateName, 1> kState{{{"sum_of_squares", true}}};
  float learning_rate;
  float epsilon;

  static RowwiseAdagrad at(const RowOptimizerOptions& options, const RowStep& step) {
    return {static_cast<float>(options.learning_rate * step.learning_rate_scale),
            static_cast<float>(options.epsilon)};
  }

  RECMILL_HOST_DEVICE void row(float& sum, float mean_square, float* factor) const {
    sum = sum + mean_square;
    *factor = learning_rate / (std::sqrt(sum) + epsilon);
  }

  RECMILL_HOST_DEVICE void element(float& weight, float*, float gradient,
                                   const float* factor) const {
    const float moved = weight - *factor * gradient;
    weight = learning_rate == 0.0f ? weight : moved;
  }
};

}  // namespace recmill::table
