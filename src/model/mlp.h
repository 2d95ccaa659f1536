// SPDX-License-Identifier: Apache-2.0
// Fully connected layers over everything side by side, the model of RecFlex's workloads:
//
//   x:    the dense values (if there are any), then the pooled rows in the order of the features
//   top:  x through fully connected layers, ReLU after all but the last: the logit
//
// Parameters are named as an nn.Sequential of Linear and ReLU names them: top.0.weight, top.0.bias,
// top.2.weight, ... Made of kernels/dense_layer alone, without LibTorch. Precision bfloat16
// (options.precision): what enters the products of a layer is bfloat16, and so is the gradient by
// x; the logit stays float32.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/model.h"
#include "model/model_options.h"

namespace recmill::model {

/// `options` and `spec` as check_options() accepts them. Fails where the machine cannot multiply
/// bfloat16.
Result<std::unique_ptr<Model>> make_mlp(const ModelOptions& options, const ModelSpec& spec);

}  // namespace recmill::model
