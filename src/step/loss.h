// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace recmill::train {

/// Binary cross-entropy with logits over some samples of a global batch of `global_samples`.
///   p_i = 1 / (1 + exp(-z_i)),   l_i = max(z_i, 0) - z_i y_i + ln(1 + exp(-|z_i|))   (float64)
///   loss of the batch = sum_i w_i l_i / global_samples;  gradient_i = w_i (p_i - y_i) /
///   global_samples
/// Returns the fold of w_i l_i in order, from `sum` on: 0.0, or that of the slice's samples before.
/// `weights` may be empty: all 1. `gradient` may be empty: not wanted.
double add_log_loss(double sum, std::span<const float> logits, std::span<const float> labels,
                    std::span<const float> weights, int64_t global_samples,
                    std::span<float> gradient);

}  // namespace recmill::train
