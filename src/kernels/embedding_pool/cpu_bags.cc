// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/cpu_templates.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding_pool/cpu_bags.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/embedding_pool/bags-inl.h"
#include "kernels/embedding_pool/copied_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

template <bool kFetch, size_t kHeld, bool kOneEach>
void pool_held(const PoolPiece& piece, const BagsParameters& parameters) {
  with_row_class(*piece.task, [&](auto row, auto weighted) {
    pool_bags<decltype(row), decltype(weighted)::value, kFetch, kHeld, kOneEach>(piece, parameters);
  });
}

// Values: fetch, held, store, stage, ids.
void PoolBags(const PoolPiece& piece, ParameterValues values, std::byte*) {
  const BagsParameters parameters{values[0], static_cast<PoolStore>(values[2]), values[4]};
  stage(piece, values[3] != 0);
  if (values[1] == 8) {
    parameters.fetch > 0 ? pool_held<true, 8, false>(piece, parameters)
                         : pool_held<false, 8, false>(piece, parameters);
  } else {
    parameters.fetch > 0 ? pool_held<true, 2, false>(piece, parameters)
                         : pool_held<false, 2, false>(piece, parameters);
  }
}

// Values: fetch, store, stage, ids.
void PoolOneEach(const PoolPiece& piece, ParameterValues values, std::byte*) {
  const BagsParameters parameters{values[0], static_cast<PoolStore>(values[1]), values[3]};
  stage(piece, values[2] != 0);
  parameters.fetch > 0 ? pool_held<true, 8, true>(piece, parameters)
                       : pool_held<false, 8, true>(piece, parameters);
}

// Values: fetch.
void CopyRows(const PoolPiece& piece, ParameterValues values, std::byte*) {
  with_row_class(*piece.task, [&](auto row, auto weighted) {
    copy_rows<decltype(row), decltype(weighted)::value>(piece, values[0]);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels {

HWY_EXPORT(PoolBags);
HWY_EXPORT(PoolOneEach);
HWY_EXPORT(CopyRows);

void pool_bags(const PoolPiece& piece, ParameterValues values, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(PoolBags)(piece, values, scratch);
}
void pool_one_each(const PoolPiece& piece, ParameterValues values, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(PoolOneEach)(piece, values, scratch);
}
void copy_rows(const PoolPiece& piece, ParameterValues values, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(CopyRows)(piece, values, scratch);
}

}  // namespace recmill::kernels
#endif
