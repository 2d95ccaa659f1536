// SPDX-License-Identifier: Apache-2.0
// The one list of row optimizers.
//
// At a learning rate of 0 (a warm-up or a decay may come to it; as rounded to float32) weights keep
// their bits: -0 stays -0, and a step of 0 / 0 or infinity times 0 is none. The gradient goes into
// the state as at any other rate; FTRL, which divides by the rate, leaves its state too.
//
// L2 (RowOptimizerOptions::l2, rounded to float32): of each row that is updated, once an iteration,
// l2 * weight is added to the summed gradient before the formula or its mean of squares sees it
// (kernels/row_update/with_l2.h): torch.optim's weight_decay, on the rows that are looked up. FTRL
// has a place of its own for l2.
#pragma once

#include "base/status.h"
#include "table/optimizers/adagrad.h"
#include "table/optimizers/adam.h"
#include "table/optimizers/adam_by_row.h"
#include "table/optimizers/ftrl.h"
#include "table/optimizers/rowwise_adagrad.h"
#include "table/optimizers/sgd.h"

namespace recmill::table {

/// What is added to gradients, as a share of the weight.
inline float l2_of_gradients(const RowOptimizerOptions& options) {
  return options.kind == OptimizerKind::ftrl ? 0.0f : static_cast<float>(options.l2);
}

/// Calls body(formula) with the formula of options.kind, its constants as of `step`.
template <class Body>
void with_formula(const RowOptimizerOptions& options, const RowStep& step, const Body& body) {
  switch (options.kind) {
    case OptimizerKind::sgd:
      return body(Sgd::at(options, step));
    case OptimizerKind::adagrad:
      return body(Adagrad::at(options, step));
    case OptimizerKind::rowwise_adagrad:
      return body(RowwiseAdagrad::at(options, step));
    case OptimizerKind::adam:
      if (options.correction == BiasCorrection::row) return body(AdamByRow::at(options, step));
      return body(Adam::at(options, step));
    case OptimizerKind::ftrl:
      return body(Ftrl::at(options, step));
  }
  RECMILL_CHECK(false, "row optimizer of unknown kind");
}

}  // namespace recmill::table
