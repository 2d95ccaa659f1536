// SPDX-License-Identifier: Apache-2.0
// What is fused around the products: the gradient through the activation with the bias's gradient,
// and bfloat16 layers with one output.
#pragma once

#include <cstdint>

#include "kernels/dense_layer/dense_layer.h"

namespace recmill::kernels::dense_layer {

/// float32: writes g over dy [outputs][samples], and folds its rows into bias_gradient in the order
/// of samples (from +0 unless arguments.accumulate).
void gradient_by_feature(const LayerSpec& spec, int64_t samples,
                         const BackwardArguments& arguments);

/// bfloat16: writes g [samples][outputs], and folds its columns likewise.
void gradient_by_sample(const LayerSpec& spec, int64_t samples, const BackwardArguments& arguments,
                        void* g);

/// bfloat16 with spec.outputs == 1. `weight` [inputs]: already rounded to bfloat16.
void single_output_forward(const LayerSpec& spec, int64_t samples, const void* x,
                           const float* weight, float bias, void* y);
/// `g` as gradient_by_sample() wrote it; the bias's gradient is done.
void single_output_backward(const LayerSpec& spec, int64_t samples, const float* weight,
                            const void* g, const BackwardArguments& arguments);

}  // namespace recmill::kernels::dense_layer
