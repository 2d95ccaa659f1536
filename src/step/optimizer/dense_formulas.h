// SPDX-License-Identifier: Apache-2.0
// The formulas of dense_optimizer.h for one element, shared by the CPU and GPUs.
#pragma once

#include <cmath>

#include "base/host_device.h"

namespace recmill::train {

/// The constants of one step in float32, as the formulas use them.
struct StepConstants {
  float learning_rate, clip, weight_decay, momentum, epsilon, beta1, beta2, correction1,
      correction2;

  RECMILL_HOST_DEVICE float effective(float gradient, float weight) const {
    return clip * gradient + weight_decay * weight;
  }
  /// At learning rate 0 a weight keeps its bits, whatever the step.
  RECMILL_HOST_DEVICE float moved(float weight, float step) const {
    const float next = weight - step;
    return learning_rate == 0.0f ? weight : next;
  }
};

/// Each has kState state columns, of which an element's are `first` and `second`.
struct DenseSgd {
  static constexpr int kState = 0;
  RECMILL_HOST_DEVICE static void element(const StepConstants& c, float& weight, float gradient,
                                          float&, float&) {
    weight = c.moved(weight, c.learning_rate * c.effective(gradient, weight));
  }
};

struct DenseMomentum {
  static constexpr int kState = 1;
  RECMILL_HOST_DEVICE static void element(const StepConstants& c, float& weight, float gradient,
                                          float& momentum, float&) {
    momentum = c.momentum * momentum + c.effective(gradient, weight);
    weight = c.moved(weight, c.learning_rate * momentum);
  }
};

struct DenseAdagrad {
  static constexpr int kState = 1;
  RECMILL_HOST_DEVICE static void element(const StepConstants& c, float& weight, float gradient,
                                          float& squares, float&) {
    const float effective = c.effective(gradient, weight);
    squares += effective * effective;
    weight = c.moved(weight, c.learning_rate * effective / (std::sqrt(squares) + c.epsilon));
  }
};

struct DenseAdam {
  static constexpr int kState = 2;
  RECMILL_HOST_DEVICE static void element(const StepConstants& c, float& weight, float gradient,
                                          float& first, float& second) {
    const float effective = c.effective(gradient, weight);
    first = c.beta1 * first + (1.0f - c.beta1) * effective;
    second = c.beta2 * second + (1.0f - c.beta2) * effective * effective;
    const float root = std::sqrt(second / c.correction2) + c.epsilon;
    weight = c.moved(weight, c.learning_rate * (first / c.correction1) / root);
  }
};

}  // namespace recmill::train
