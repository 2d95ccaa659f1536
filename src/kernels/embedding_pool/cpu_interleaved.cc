// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/cpu_templates.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding_pool/cpu_interleaved.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/embedding_pool/interleaved-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

/// Never reached: rows are not fetched ahead.
constexpr int64_t kNever = int64_t{1} << 40;

// Values of both: ways, fetch, stage, ids.
void PoolBagsInterleaved(const PoolPiece& piece, ParameterValues values, std::byte*) {
  const BagsParameters parameters{values[1] > 0 ? values[1] : kNever, PoolStore::plain, values[3]};
  stage(piece, values[2] != 0);
  with_row_class(*piece.task, [&](auto row, auto weighted) {
    using Row = decltype(row);
    constexpr bool kWeighted = decltype(weighted)::value;
    if (values[0] == 2) {
      pool_bags_interleaved<Row, kWeighted, 2>(piece, parameters);
    } else {
      pool_bags_interleaved<Row, kWeighted, 4>(piece, parameters);
    }
  });
}

void PoolRunsInterleaved(const PoolPiece& piece, ParameterValues values, std::byte*) {
  const BagsParameters parameters{values[1] > 0 ? values[1] : kNever, PoolStore::plain, values[3]};
  stage(piece, values[2] != 0);
  with_row_class(*piece.task, [&](auto row, auto weighted) {
    using Row = decltype(row);
    constexpr bool kWeighted = decltype(weighted)::value;
    if (values[0] == 2) {
      pool_runs_interleaved<Row, kWeighted, 2>(piece, parameters);
    } else {
      pool_runs_interleaved<Row, kWeighted, 4>(piece, parameters);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels {

HWY_EXPORT(PoolBagsInterleaved);
HWY_EXPORT(PoolRunsInterleaved);

void pool_bags_interleaved(const PoolPiece& piece, ParameterValues values, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(PoolBagsInterleaved)(piece, values, scratch);
}
void pool_runs_interleaved(const PoolPiece& piece, ParameterValues values, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(PoolRunsInterleaved)(piece, values, scratch);
}

}  // namespace recmill::kernels
#endif
