// SPDX-License-Identifier: Apache-2.0
// Transposes of small blocks in registers, compiled once for each instruction set (Highway's
// foreach_target).
#if defined(RECMILL_KERNELS_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_TRANSPOSE_INL_H
#undef RECMILL_KERNELS_TRANSPOSE_INL_H
#else
#define RECMILL_KERNELS_TRANSPOSE_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::transpose::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Four columns of every fourth row from `row` on; load(row) gives four columns of one.
template <class D, class Load>
HWY_INLINE hn::Vec<D> load_every_fourth(D d, const Load& load, int64_t row) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return load(row);
  } else {
    const hn::Half<D> half;
    constexpr auto kRows = static_cast<int64_t>(hn::MaxLanes(D())) / 2;
    // A fourth of the lanes, a row each.
    return hn::Combine(d, load_every_fourth(half, load, row + kRows),
                       load_every_fourth(half, load, row));
  }
}

// Transposes four columns of as many rows as D has lanes: load(row) gives a row's four elements,
// store(c, v) takes column c = 0 ... 3.
template <class D, class Load, class Store>
HWY_INLINE void transpose_columns(D d, const Load& load, const Store& store) {
  const auto r0 = load_every_fourth(d, load, 0), r1 = load_every_fourth(d, load, 1);
  const auto r2 = load_every_fourth(d, load, 2), r3 = load_every_fourth(d, load, 3);
  const auto a = hn::InterleaveLower(d, r0, r2), b = hn::InterleaveUpper(d, r0, r2);
  const auto c = hn::InterleaveLower(d, r1, r3), e = hn::InterleaveUpper(d, r1, r3);
  store(0, hn::InterleaveLower(d, a, c));
  store(1, hn::InterleaveUpper(d, a, c));
  store(2, hn::InterleaveLower(d, b, e));
  store(3, hn::InterleaveUpper(d, b, e));
}

}  // namespace recmill::kernels::transpose::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
