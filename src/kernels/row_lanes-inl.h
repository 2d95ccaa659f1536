// SPDX-License-Identifier: Apache-2.0
// Embedding rows as SIMD lanes: at most 16 floats, loaded from rows of every precision. Included
// once for each instruction set (Highway's foreach_target).

#if defined(RECMILL_KERNELS_ROW_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_ROW_LANES_INL_H_
#undef RECMILL_KERNELS_ROW_LANES_INL_H_
#else
#define RECMILL_KERNELS_ROW_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/partial_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using Floats = hn::Vec<FloatTag>;
constexpr FloatTag kFloats{};
constexpr int64_t kLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;

/// The first `count` < kLanes floats; the rest is +0 and not read.
HWY_INLINE Floats load_first(const float* from, int64_t count) {
  return partial_vectors::HWY_NAMESPACE::load_first(kFloats, from, count);
}
/// Writes the first `count` < kLanes floats and nothing else.
HWY_INLINE void store_first(Floats value, float* to, int64_t count) {
  partial_vectors::HWY_NAMESPACE::store_first(kFloats, value, to, count);
}

/// How a row's weights are read: `at` is where the first lane's weight is.
struct Float32Row {
  static constexpr int64_t kBytes = 4;
  template <class Tag>
  static HWY_INLINE hn::Vec<Tag> load(Tag tag, const std::byte* at) {
    return hn::LoadU(tag, reinterpret_cast<const float*>(at));
  }
  /// The first `count` lanes, fewer than the tag has; the rest is +0 and not read.
  template <class Tag>
  static HWY_INLINE hn::Vec<Tag> load_first(Tag tag, const std::byte* at, int64_t count) {
    return partial_vectors::HWY_NAMESPACE::load_first(tag, reinterpret_cast<const float*>(at),
                                                      count);
  }
};

template <class Half>
struct HalfRow {
  static constexpr int64_t kBytes = 2;
  template <class Tag>
  static HWY_INLINE hn::Vec<Tag> load(Tag tag, const std::byte* at) {
    constexpr hn::Rebind<Half, Tag> halves{};
    return hn::PromoteTo(tag, hn::LoadU(halves, reinterpret_cast<const Half*>(at)));
  }
  template <class Tag>
  static HWY_INLINE hn::Vec<Tag> load_first(Tag tag, const std::byte* at, int64_t count) {
    alignas(32) std::byte padded[2 * kLanes] = {};
    std::memcpy(padded, at, std::min(static_cast<size_t>(2 * count), sizeof padded));
    return load(tag, padded);
  }
};
using BFloat16Row = HalfRow<hwy::bfloat16_t>;
using Float16Row = HalfRow<hwy::float16_t>;

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#endif
