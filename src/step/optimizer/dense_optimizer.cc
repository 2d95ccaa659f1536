// SPDX-License-Identifier: Apache-2.0
#include "step/optimizer/dense_optimizer.h"

#include <algorithm>
#include <cmath>

namespace recmill::train {
namespace {

constexpr int64_t kBlock = 4096;

StepConstants constants_of(const DenseOptimizerOptions& options, int64_t iteration, double scale,
                           double clip) {
  const double t = static_cast<double>(iteration + 1);
  return {static_cast<float>(options.learning_rate * scale),
          static_cast<float>(clip),
          static_cast<float>(options.weight_decay),
          static_cast<float>(options.momentum),
          static_cast<float>(options.epsilon),
          static_cast<float>(options.beta1),
          static_cast<float>(options.beta2),
          static_cast<float>(1.0 - std::pow(options.beta1, t)),
          static_cast<float>(1.0 - std::pow(options.beta2, t))};
}

std::vector<std::string> state_names(const DenseOptimizerOptions& options) {
  switch (options.kind) {
    case DenseOptimizerKind::sgd:
      if (options.momentum == 0.0) return {};
      return {"momentum"};
    case DenseOptimizerKind::adagrad:
      return {"sum_of_squares"};
    case DenseOptimizerKind::adam:
      return {"first_moment", "second_moment"};
  }
  return {};
}

}  // namespace

DenseOptimizer::DenseOptimizer(const DenseOptimizerOptions& options, int64_t parameters,
                               std::vector<ParameterRange> trained)
    : options_(options), trained_(std::move(trained)) {
  const float first = options.kind == DenseOptimizerKind::adagrad
                          ? static_cast<float>(options.initial_accumulator)
                          : 0.0f;
  for (const std::string& name : state_names(options)) {
    state_.push_back({name, std::vector<float>(parameters, first)});
  }
}

StepConstants DenseOptimizer::constants(int64_t iteration, double learning_rate_scale) const {
  return constants_of(options_, iteration, learning_rate_scale, /*clip=*/1.0);
}

void DenseOptimizer::step(int64_t iteration, double learning_rate_scale,
                          std::span<const float> gradient, std::span<float> parameters,
                          ThreadPool& pool) {
  begin(iteration, learning_rate_scale, gradient, pool);
  pool.run_ranges(static_cast<int64_t>(gradient.size()), 16 * kBlock,
                  [&](int64_t begin, int64_t end) {
                    apply(begin, gradient.subspan(begin, end - begin), parameters);
                  });
}

void DenseOptimizer::begin(int64_t iteration, double learning_rate_scale,
                           std::span<const float> gradient, ThreadPool& pool) {
  double clip = 1.0;
  if (clips()) {
    const double norm = l2_norm(gradient, pool);
    if (norm > options_.clip_norm) clip = options_.clip_norm / norm;
  }
  constants_ = constants_of(options_, iteration, learning_rate_scale, clip);
}

void DenseOptimizer::apply(int64_t first, std::span<const float> gradient,
                           std::span<float> parameters) {
  const int64_t end = first + static_cast<int64_t>(gradient.size());
  for (const ParameterRange& range : trained_) {
    const int64_t at = std::max(first, range.first);
    const int64_t count = std::min(end, range.first + range.count) - at;
    if (count <= 0) continue;
    update(options_.kind, constants_,
           {parameters.data() + at, gradient.data() + (at - first),
            state_.empty() ? nullptr : state_[0].values.data() + at,
            state_.size() < 2 ? nullptr : state_[1].values.data() + at},
           count);
  }
}

double l2_norm(std::span<const float> values, ThreadPool& pool) {
  const auto size = static_cast<int64_t>(values.size());
  std::vector<double> sums((size + kBlock - 1) / kBlock);
  pool.run_ranges(size, kBlock, [&](int64_t begin, int64_t end) {
    double sum = 0.0;
    for (int64_t i = begin; i < end; ++i) {
      sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    sums[begin / kBlock] = sum;
  });
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

}  // namespace recmill::train
