// SPDX-License-Identifier: Apache-2.0
// The first lanes of a vector of floats, from and to memory that ends there. Included once for each
// instruction set (Highway's foreach_target).
#if defined(RECMILL_KERNELS_PARTIAL_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_PARTIAL_VECTORS_INL_H_
#undef RECMILL_KERNELS_PARTIAL_VECTORS_INL_H_
#else
#define RECMILL_KERNELS_PARTIAL_VECTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::partial_vectors::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// `count` floats, at most one a lane; the rest is +0 and not read.
template <class D>
HWY_INLINE hn::Vec<D> load_first(D d, const float* from, int64_t count) {
  if constexpr (HWY_TARGET <= HWY_AVX2) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
  } else {  // where Highway loads all lanes, and from an aligned address
    alignas(64) float all[hn::MaxLanes(D())] = {};
    std::copy_n(from, count, all);
    return hn::Load(d, all);
  }
}

/// Writes the first `count` floats and nothing else.
template <class D>
HWY_INLINE void store_first(D d, hn::Vec<D> value, float* to, int64_t count) {
  hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(count)), d, to);
}

}  // namespace recmill::kernels::partial_vectors::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
