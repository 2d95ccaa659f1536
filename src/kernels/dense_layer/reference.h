// SPDX-License-Identifier: Apache-2.0
// The formulas of dense_layer.h as three loops, for any number of samples; sums in float64.
#pragma once

#include "kernels/dense_layer/dense_layer.h"

namespace recmill::kernels::dense_layer::reference {

void forward(const LayerSpec& spec, int64_t samples, const void* x, const float* weight,
             const float* bias, void* y);
void backward(const LayerSpec& spec, int64_t samples, const float* weight,
              const BackwardArguments& arguments);

}  // namespace recmill::kernels::dense_layer::reference
