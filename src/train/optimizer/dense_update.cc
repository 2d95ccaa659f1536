// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer/dense_update.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/optimizer/dense_update.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Plain loops, of which the compiler makes vectors of each target. Constants and pointers by value:
// a store to an element changes none of them.
HWY_BEFORE_NAMESPACE();
namespace recmill::train::HWY_NAMESPACE {

HWY_INLINE float effective(StepConstants c, float gradient, float parameter) {
  return c.clip * gradient + c.weight_decay * parameter;
}

void sgd(StepConstants c, float* HWY_RESTRICT w, const float* HWY_RESTRICT g, int64_t count) {
  for (int64_t i = 0; i < count; ++i) w[i] -= c.learning_rate * effective(c, g[i], w[i]);
}

void momentum(StepConstants c, float* HWY_RESTRICT w, const float* HWY_RESTRICT g,
              float* HWY_RESTRICT m, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    m[i] = c.momentum * m[i] + effective(c, g[i], w[i]);
    w[i] -= c.learning_rate * m[i];
  }
}

void adagrad(StepConstants c, float* HWY_RESTRICT w, const float* HWY_RESTRICT g,
             float* HWY_RESTRICT s, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float gradient = effective(c, g[i], w[i]);
    s[i] += gradient * gradient;
    w[i] -= c.learning_rate * gradient / (std::sqrt(s[i]) + c.epsilon);
  }
}

void adam(StepConstants c, float* HWY_RESTRICT w, const float* HWY_RESTRICT g,
          float* HWY_RESTRICT m, float* HWY_RESTRICT v, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float gradient = effective(c, g[i], w[i]);
    m[i] = c.beta1 * m[i] + (1.0f - c.beta1) * gradient;
    v[i] = c.beta2 * v[i] + (1.0f - c.beta2) * gradient * gradient;
    const float root = std::sqrt(v[i] / c.correction2) + c.epsilon;
    w[i] -= c.learning_rate * (m[i] / c.correction1) / root;
  }
}

void update(DenseOptimizerKind kind, const StepConstants& c, const Elements& e, int64_t count) {
  switch (kind) {
    case DenseOptimizerKind::sgd:
      if (e.first_state == nullptr) return sgd(c, e.parameters, e.gradient, count);
      return momentum(c, e.parameters, e.gradient, e.first_state, count);
    case DenseOptimizerKind::adagrad:
      return adagrad(c, e.parameters, e.gradient, e.first_state, count);
    case DenseOptimizerKind::adam:
      return adam(c, e.parameters, e.gradient, e.first_state, e.second_state, count);
  }
}

}  // namespace recmill::train::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::train {
HWY_EXPORT(update);

void update(DenseOptimizerKind kind, const StepConstants& constants, const Elements& elements,
            int64_t count) {
  HWY_DYNAMIC_DISPATCH(update)(kind, constants, elements, count);
}

}  // namespace recmill::train
#endif  // HWY_ONCE
