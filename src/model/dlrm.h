// SPDX-License-Identifier: Apache-2.0
// DLRM (Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation
// Systems", 2019) with the dot interaction:
//
//   bottom:  dense values through fully connected layers, each with ReLU
//   z:       kernels/interaction of the bottom output and the pooled rows, all of one dimension
//   top:     z through fully connected layers, ReLU after all but the last: the logit
//
// Parameters are named as two nn.Sequential of Linear and ReLU name them: bottom.0.weight,
// bottom.0.bias, bottom.2.weight, ..., top.0.weight, ... Made of kernels/dense_layer alone, without
// LibTorch. Precision bfloat16 (options.precision): what enters the products of a layer is
// bfloat16, rows, the bottom output and the logit stay float32 (kernels/dense_layer).
#pragma once

#include <memory>

#include "base/status.h"
#include "model/model.h"
#include "model/model_options.h"

namespace recmill::model {

/// `options` and `spec` as check_options() accepts them. Without dense columns there are no bottom
/// layers, and z is the rows' interaction alone. Fails where the machine cannot multiply bfloat16.
Result<std::unique_ptr<Model>> make_dlrm(const ModelOptions& options, const ModelSpec& spec);

}  // namespace recmill::model
