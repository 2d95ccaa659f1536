// SPDX-License-Identifier: Apache-2.0
#include "step/loss.h"

#include <algorithm>
#include <cmath>

namespace recmill::train {

double add_log_loss(double sum, std::span<const float> logits, std::span<const float> labels,
                    std::span<const float> weights, int64_t global_samples,
                    std::span<float> gradient) {
  const double count = static_cast<double>(global_samples);
  for (size_t i = 0; i < logits.size(); ++i) {
    const double z = logits[i];
    const double y = labels[i];
    const double w = weights.empty() ? 1.0 : static_cast<double>(weights[i]);
    const double e = std::exp(-std::fabs(z));
    const double p = z >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
    sum += w * (std::max(z, 0.0) - z * y + std::log1p(e));
    if (!gradient.empty()) gradient[i] = static_cast<float>(w * (p - y) / count);
  }
  return sum;
}

}  // namespace recmill::train
