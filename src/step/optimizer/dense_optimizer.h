// SPDX-License-Identifier: Apache-2.0
// Optimizers of the dense parameters, over one flat float32 vector. Elementwise, so that ranges may
// be worked on in any order by any thread. Per element, in float32, g the gradient of the global
// batch:
//   g  = clip * g               clip = min(1, clip_norm / |g|), 1 without clip_norm; |g| in float64
//   g  = g + weight_decay * w   where weight_decay is set
//   sgd      w -= lr * g;   with momentum:  m = momentum * m + g,  w -= lr * m
//   adagrad  s += g * g,    w -= lr * g / (sqrt(s) + epsilon)
//   adam     m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g g,  t = iteration + 1,
//            w -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
// as torch.optim's SGD, Adagrad and Adam. t counts the run's iterations. At lr = 0 (float32) w
// keeps its bits, and the state takes the gradient as at any other rate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/thread_pool.h"
#include "step/optimizer/dense_update.h"
#include "step/optimizer/optimizer_options.h"

namespace recmill::train {

/// A stretch of the flat vector.
struct ParameterRange {
  int64_t first = 0;
  int64_t count = 0;
};

class DenseOptimizer {
 public:
  /// `trained`: the ranges that are updated; `parameters`: size of the whole vector.
  DenseOptimizer(const DenseOptimizerOptions& options, int64_t parameters,
                 std::vector<ParameterRange> trained);

  /// One step. `learning_rate_scale` multiplies the learning rate.
  void step(int64_t iteration, double learning_rate_scale, std::span<const float> gradient,
            std::span<float> parameters, ThreadPool& pool);

  /// The same in pieces: begin() once, then apply() on any threads, over each element once.
  /// begin() reads `gradient`, of the whole vector, where clips(). `gradient` of apply() is that of
  /// elements [first, first + size).
  bool clips() const { return options_.clip_norm > 0.0; }
  void begin(int64_t iteration, double learning_rate_scale, std::span<const float> gradient,
             ThreadPool& pool);
  void apply(int64_t first, std::span<const float> gradient, std::span<float> parameters);

  const DenseOptimizerOptions& options() const { return options_; }
  /// The ranges that are updated.
  const std::vector<ParameterRange>& trained() const { return trained_; }
  /// Constants of a step of a gradient that is not clipped.
  StepConstants constants(int64_t iteration, double learning_rate_scale) const;

  /// State by name, [parameters] each: what a checkpoint holds.
  struct State {
    std::string name;
    std::vector<float> values;
  };
  std::vector<State>& state() { return state_; }
  const std::vector<State>& state() const { return state_; }

 private:
  const DenseOptimizerOptions options_;
  const std::vector<ParameterRange> trained_;
  std::vector<State> state_;
  StepConstants constants_{};  // of the step begun
};

/// L2 norm in float64: blocks of 4,096 elements folded in order, then folded in order themselves.
double l2_norm(std::span<const float> values, ThreadPool& pool);

}  // namespace recmill::train
