// SPDX-License-Identifier: Apache-2.0
#include "train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace recmill::train {
namespace {

double warmup_scale(const WarmupOptions& warmup, int64_t iteration) {
  if (iteration >= warmup.iterations) return 1.0;
  const double done = static_cast<double>(iteration + 1) / static_cast<double>(warmup.iterations);
  return warmup.start + (1.0 - warmup.start) * done;
}

double decay_scale(const DecayOptions& decay, int64_t iteration) {
  if (decay.kind == DecayKind::none || iteration < decay.start) return 1.0;
  const double length = static_cast<double>(std::max<int64_t>(decay.iterations, 1));
  const double done = std::min(1.0, static_cast<double>(iteration - decay.start) / length);
  switch (decay.kind) {
    case DecayKind::none:
      break;
    case DecayKind::linear:
      return 1.0 + (decay.end - 1.0) * done;
    case DecayKind::cosine:
      return decay.end + (1.0 - decay.end) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
    case DecayKind::exponential:
      return std::pow(std::max(decay.end, 1e-30), done);
  }
  return 1.0;
}

}  // namespace

double learning_rate_scale(const WarmupOptions& warmup, const DecayOptions& decay,
                           int64_t iteration) {
  return warmup_scale(warmup, iteration) * decay_scale(decay, iteration);
}

}  // namespace recmill::train
