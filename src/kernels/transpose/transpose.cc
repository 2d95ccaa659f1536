// SPDX-License-Identifier: Apache-2.0
#include "kernels/transpose/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/transpose/transpose.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::transpose::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void transpose_matrix(int64_t rows, int64_t columns, const float* HWY_RESTRICT from,
                      float* HWY_RESTRICT to) {
  const hn::CappedTag<float, 16> df;
  const hn::FixedTag<float, 4> four;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  const int64_t whole = columns - columns % 4;
  int64_t r = 0;
  for (; r + lanes <= rows; r += lanes) {
    const float* piece = from + r * columns;
    for (int64_t c = 0; c < whole; c += 4) {
      transpose_columns(
          df, [&](int64_t row) HWY_ATTR { return hn::LoadU(four, piece + row * columns + c); },
          [&](int64_t column, auto v)
              HWY_ATTR { hn::StoreU(v, df, to + (c + column) * rows + r); });
    }
    for (int64_t c = whole; c < columns; ++c) {
      for (int64_t row = 0; row < lanes; ++row) to[c * rows + r + row] = piece[row * columns + c];
    }
  }
  for (; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
  }
}

}  // namespace recmill::kernels::transpose::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels::transpose {
HWY_EXPORT(transpose_matrix);

void transpose_matrix(int64_t rows, int64_t columns, const float* from, float* to) {
  HWY_DYNAMIC_DISPATCH(transpose_matrix)(rows, columns, from, to);
}

}  // namespace recmill::kernels::transpose
#endif  // HWY_ONCE
