// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/cpu_templates.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding_pool/cpu_grouped.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/embedding_pool/grouped_ids-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

// Values: lookups.
void PoolGroupedIds(const PoolPiece& piece, ParameterValues values, std::byte* scratch) {
  with_row_class(*piece.task, [&](auto row, auto weighted) {
    pool_grouped_ids<decltype(row), decltype(weighted)::value>(piece, values[0], scratch);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels {

HWY_EXPORT(PoolGroupedIds);

void pool_grouped_ids(const PoolPiece& piece, ParameterValues values, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(PoolGroupedIds)(piece, values, scratch);
}

}  // namespace recmill::kernels
#endif
