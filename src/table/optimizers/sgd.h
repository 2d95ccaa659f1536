// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/host_device.h"
#include "schema/row_optimizer_options.h"
#include "table/optimizers/row_step.h"
#include "table/optimizers/state_name.h"

namespace recmill::table {

/// Stochastic gradient descent. No state.
///   weight = weight - learning_rate * gradient
/// At learning rate 0 the weight keeps its bits (row_formulas.h).
struct Sgd {
  static constexpr int kElementColumns = 0;
  static constexpr bool kRowState = false;
  static constexpr int kFactors = 0;
  static constexpr std::array<StateName, 0> kState{};
  float learning_rate;

  static Sgd at(const RowOptimizerOptions& options, const RowStep& step) {
    return {static_cast<float>(options.learning_rate * step.learning_rate_scale)};
  }

  RECMILL_HOST_DEVICE void element(float& weight, float*, float gradient, const float*) const {
    const float moved = weight - learning_rate * gradient;
    weight = learning_rate == 0.0f ? weight : moved;
  }
};

}  // namespace recmill::table
