// SPDX-License-Identifier: Apache-2.0
// Loads and stores of float32 and bfloat16 elements as float32 vectors, for each Highway target.
#if defined(RECMILL_KERNELS_PRECISION_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_PRECISION_VECTORS_INL_H_
#undef RECMILL_KERNELS_PRECISION_VECTORS_INL_H_
#else
#define RECMILL_KERNELS_PRECISION_VECTORS_INL_H_
#endif

#include <hwy/highway.h>

#include "base/bfloat16.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::precision_vectors::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The bits of bfloat16(v) in the upper half of each lane, zeros below: to nearest, ties to even; a
/// NaN stays a quiet NaN (base/bfloat16.h).
template <class DF, class V>
HWY_INLINE auto rounded_bits(DF /*df*/, V v) {
  const hn::RebindToUnsigned<DF> du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
  return hn::And(hn::IfThenElse(is_nan, quiet, rounded), hn::Set(du, 0xFFFF0000u));
}

template <class DF>
HWY_INLINE hn::Vec<DF> load_elements(DF df, const float* HWY_RESTRICT from) {
  return hn::LoadU(df, from);
}
template <class DF>
HWY_INLINE hn::Vec<DF> load_elements(DF df, const BFloat16* HWY_RESTRICT from) {
  const hn::RebindToUnsigned<DF> du;
  const hn::Rebind<uint16_t, DF> dh;
  const auto bits = hn::LoadU(dh, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
}

/// Stores v and returns what was stored.
template <class DF, class V>
HWY_INLINE V store_elements(DF df, V v, float* HWY_RESTRICT to) {
  hn::StoreU(v, df, to);
  return v;
}
template <class DF, class V>
HWY_INLINE V store_elements(DF df, V v, BFloat16* HWY_RESTRICT to) {
  const hn::RebindToSigned<DF> di;
  const hn::Rebind<uint16_t, DF> dh;
  const auto bits = rounded_bits(df, v);
  const auto halves = hn::DemoteTo(dh, hn::BitCast(di, hn::ShiftRight<16>(bits)));
  hn::StoreU(halves, dh, reinterpret_cast<uint16_t*>(to));
  return hn::BitCast(df, bits);
}

HWY_INLINE float load_element(const float* from) {
  return *from;
}
HWY_INLINE float load_element(const BFloat16* from) {
  return to_float(*from);
}
HWY_INLINE float store_element(float value, float* to) {
  return *to = value;
}
HWY_INLINE float store_element(float value, BFloat16* to) {
  *to = to_bfloat16(value);
  return to_float(*to);
}

}  // namespace recmill::kernels::precision_vectors::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
