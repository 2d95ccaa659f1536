// SPDX-License-Identifier: Apache-2.0
#include "step/optimizer/dense_update.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "step/optimizer/dense_update.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Plain loops, of which the compiler makes vectors of each target. Constants and pointers by value:
// a store to an element changes none of them.
HWY_BEFORE_NAMESPACE();
namespace recmill::train::HWY_NAMESPACE {

template <class Formula>
void update_all(StepConstants c, float* HWY_RESTRICT w, const float* HWY_RESTRICT g,
                float* HWY_RESTRICT first, float* HWY_RESTRICT second, int64_t count) {
  float none = 0.0f;
  for (int64_t i = 0; i < count; ++i)
    Formula::element(c, w[i], g[i], Formula::kState < 1 ? none : first[i],
                     Formula::kState < 2 ? none : second[i]);
}

void update(DenseOptimizerKind kind, const StepConstants& c, const Elements& e, int64_t count) {
  const auto with = [&]<class Formula>(Formula) {
    update_all<Formula>(c, e.parameters, e.gradient, e.first_state, e.second_state, count);
  };
  switch (kind) {
    case DenseOptimizerKind::sgd:
      return e.first_state == nullptr ? with(DenseSgd{}) : with(DenseMomentum{});
    case DenseOptimizerKind::adagrad:
      return with(DenseAdagrad{});
    case DenseOptimizerKind::adam:
      return with(DenseAdam{});
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
