// SPDX-License-Identifier: Apache-2.0
#include "comm/add_vectors.h"

#include <string>

#include "base/status.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/add_vectors.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace recmill::HWY_NAMESPACE {

template <int n, typename T>
HWY_INLINE T pairwise(const T* const* parts, int64_t i) {
  if constexpr (n == 1) {
    return parts[0][i];
  } else {
    return pairwise<n / 2>(parts, i) + pairwise<n / 2>(parts + n / 2, i);
  }
}

template <int n, typename T>
void add(const T* const* parts, T* out, int64_t count) {
  const T* data[n];
  for (int p = 0; p < n; ++p) data[p] = parts[p];
    // Elements do not depend on each other, whether `out` is one of the parts or not.
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = pairwise<n>(data, i);
}

template <typename T>
void add_any(const T* const* parts, int n, T* out, int64_t count) {
  if (n == 2) return add<2>(parts, out, count);
  if (n == 4) return add<4>(parts, out, count);
  RECMILL_CHECK(n == 8, std::to_string(n));
  add<8>(parts, out, count);
}

void add_floats(const float* const* parts, int n, float* out, int64_t count) {
  add_any(parts, n, out, count);
}
void add_doubles(const double* const* parts, int n, double* out, int64_t count) {
  add_any(parts, n, out, count);
}

}  // namespace recmill::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill {
HWY_EXPORT(add_floats);
HWY_EXPORT(add_doubles);

void add_vectors(const float* const* parts, int n, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(add_floats)(parts, n, out, count);
}

void add_vectors(const double* const* parts, int n, double* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(add_doubles)(parts, n, out, count);
}

}  // namespace recmill
#endif  // HWY_ONCE
