// SPDX-License-Identifier: Apache-2.0
#include "table/apply_optimizer.h"

#include "table/optimizers/row_formulas.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "table/apply_optimizer.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/row_update/apply_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::table {
namespace HWY_NAMESPACE {

void ApplyRows(const RowOptimizerOptions& options, const RowStep& step,
               const kernels::ApplyRange& range) {
  with_formula(options, step,
               [&](const auto& formula) { kernels::HWY_NAMESPACE::apply_rows(range, formula); });
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::table
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::table {

HWY_EXPORT(ApplyRows);

void apply_optimizer(const RowOptimizerOptions& options, const RowStep& step,
                     const kernels::ApplyRange& range) {
  kernels::ApplyRange with_l2 = range;
  with_l2.l2 = l2_of_gradients(options);
  HWY_DYNAMIC_DISPATCH(ApplyRows)(options, step, with_l2);
}

}  // namespace recmill::table
#endif
