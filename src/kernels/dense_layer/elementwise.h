// SPDX-License-Identifier: Apache-2.0
// What is fused around the products: the gradient through the activation with the bias's gradient,
// and layers with one output.
#pragma once

#include <cstdint>

#include "kernels/dense_layer/dense_layer.h"

namespace recmill::kernels::dense_layer {

/// Writes g [samples][outputs] in spec.precision, which may be dy where the two have one type, and
/// folds its columns into bias_gradient in the order of samples (from +0 unless
/// arguments.accumulate).
void activation_gradient(const LayerSpec& spec, int64_t samples, const BackwardArguments& arguments,
                         void* g);

/// spec.outputs == 1. `weight` [inputs]: float32 values, already rounded to spec.precision.
void single_output_forward(const LayerSpec& spec, int64_t samples, const void* x,
                           const float* weight, float bias, void* y);
/// `g` as activation_gradient() wrote it; the bias's gradient is done.
void single_output_backward(const LayerSpec& spec, int64_t samples, const float* weight,
                            const void* g, const BackwardArguments& arguments);

}  // namespace recmill::kernels::dense_layer
