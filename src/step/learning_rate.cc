// SPDX-License-Identifier: Apache-2.0
#include "step/learning_rate.h"

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
  const double done = std::min(
      1.0, static_cast<double>(iteration - decay.start) / static_cast<double>(decay.iterations));
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

double LearningRate::scale(int64_t iteration) const {
  return warmup_scale(warmup, iteration) * decay_scale(decay, iteration);
}

LearningRate learning_rate_of(const TrainOptions& train, int64_t rows) {
  LearningRate rate{train.warmup, train.decay};
  if (!decays_to_the_end(train)) return rate;
  int64_t iterations = (rows + train.batch_size - 1) / train.batch_size * train.epochs;
  if (train.iterations > 0) iterations = std::min(iterations, train.iterations);
  rate.decay.iterations = std::max<int64_t>(iterations - train.decay.start, 1);
  return rate;
}

bool decays_to_the_end(const TrainOptions& train) {
  return train.decay.kind != DecayKind::none && train.decay.iterations == 0;
}

}  // namespace recmill::train
