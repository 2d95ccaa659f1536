// SPDX-License-Identifier: Apache-2.0
// Models of deep layers beside a part that sees all looked-up rows. [a; b] is concatenation,
// e = [e_1; ...; e_F] the pooled rows of all features, x the dense values.
#pragma once

#include <memory>

#include "model/torch/torch_model.h"

namespace recmill::model {

/// Wide&Deep (Cheng et al., DLRS 2016), as BagPipe has it: the wide part sees rows, not crosses.
///   h = deep(x), deep(e) or deep([x; e]) by options.deep_input; ReLU between, none after the last
///   logit = wide [e; h] + bias
/// Parameters deep.{2 l}.{weight,bias}, wide.{weight [1, |e| + |h|],bias}. Options:
/// check_options().
std::unique_ptr<TorchModel> make_wide_and_deep(const ModelOptions& options, const ModelSpec& spec);

/// Deep & Cross, version 2, low rank (Wang et al., WWW 2021, section 3), stacked.
///   x_0 = [bottom(x); e], ReLU after each bottom layer
///   x_{l+1} = x_0 * (W_l (V_l x_l) + b_l) + x_l      V_l [rank, n], W_l [n, rank], * elementwise
///   logit = over(x_L), ReLU between
/// Parameters bottom.{2 l}, cross.l.{v,w,bias}, over.{2 l}; cross biases start at 0.
std::unique_ptr<TorchModel> make_deep_cross(const ModelOptions& options, const ModelSpec& spec);

}  // namespace recmill::model
