// SPDX-License-Identifier: Apache-2.0
// By itself, so that the compilers of kernels can read it.
#pragma once

namespace recmill {

enum class OptimizerKind { sgd, adagrad, rowwise_adagrad, adam, ftrl };
/// What the bias of Adam's moments is corrected by: the run's iterations, or the row's own updates.
enum class BiasCorrection { global, row };

/// Row optimizer and its constants. Formulas are in the headers of table/.
struct RowOptimizerOptions {
  OptimizerKind kind = OptimizerKind::rowwise_adagrad;
  double learning_rate = 0.01;                         // before warm-up and decay
  double epsilon = 1e-8;                               // adagrad, rowwise_adagrad, adam
  double initial_accumulator = 0.0;                    // adagrad, rowwise_adagrad, ftrl
  double beta1 = 0.9, beta2 = 0.999;                   // adam
  double l1 = 0.0;                                     // ftrl
  double l2 = 0.0;                                     // all
  double beta = 1.0;                                   // ftrl
  BiasCorrection correction = BiasCorrection::global;  // adam
  bool operator==(const RowOptimizerOptions&) const = default;
};

}  // namespace recmill
