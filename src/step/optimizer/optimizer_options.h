// SPDX-License-Identifier: Apache-2.0
// The section [optimizer]: how the dense parameters are trained.
#pragma once

#include <cstdint>

#include "schema/options.h"

namespace recmill::train {

enum class DenseOptimizerKind { sgd, adagrad, adam };

struct DenseOptimizerOptions {
  DenseOptimizerKind kind = DenseOptimizerKind::sgd;
  double learning_rate = 0.01;
  double momentum = 0.0;
  double epsilon = 1e-8;
  double initial_accumulator = 0.0;
  double beta1 = 0.9, beta2 = 0.999;
  double weight_decay = 0.0;
  double clip_norm = 0.0;
  bool operator==(const DenseOptimizerOptions&) const = default;
};
template <typename Visitor>
void describe(Visitor& v, DenseOptimizerOptions& o) {
  v("kind", o.kind, "sgd, adagrad or adam");
  v("learning_rate", o.learning_rate, "learning rate, before warm-up and decay", at_least(0));
  v("momentum", o.momentum, "sgd: share of the last step that is taken again", from_to_below(0, 1));
  v("epsilon", o.epsilon, "adagrad, adam: added to the root", at_least(0));
  v("initial_accumulator", o.initial_accumulator, "adagrad: first value of the sum of squares",
    at_least(0));
  v("beta1", o.beta1, "adam: decay of the first moment", from_to_below(0, 1));
  v("beta2", o.beta2, "adam: decay of the second moment", from_to_below(0, 1));
  v("weight_decay", o.weight_decay, "times the parameter, added to its gradient", at_least(0));
  v("clip_norm", o.clip_norm, "longest gradient, in L2 over all parameters; 0: no limit",
    at_least(0));
}

}  // namespace recmill::train

namespace recmill {
template <>
struct EnumNames<train::DenseOptimizerKind> {
  static constexpr std::array names{
      std::pair{train::DenseOptimizerKind::sgd, std::string_view{"sgd"}},
      std::pair{train::DenseOptimizerKind::adagrad, std::string_view{"adagrad"}},
      std::pair{train::DenseOptimizerKind::adam, std::string_view{"adam"}}};
};
}  // namespace recmill
