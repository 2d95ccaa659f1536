// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_layer/panels.h"

#include <algorithm>

#include "base/bfloat16.h"
#include "base/status.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense_layer/panels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/precision_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::dense_layer::HWY_NAMESPACE {
using namespace precision_vectors::HWY_NAMESPACE;

// Columns [begin, end) of B, all in the panel that starts at `data` with column `first`.
template <typename T>
struct Panel {
  T* data;
  int64_t first, begin, end, width, pair;
  T* at(int64_t k, int64_t n) const {
    return data + (k / pair * width + n - first) * pair + k % pair;
  }
};

// Stores the 4 x 4 words of four rows as columns, `stride` words apart.
template <class D, class V>
HWY_INLINE void store_transposed(D d, V r0, V r1, V r2, V r3, hn::TFromD<D>* to, int64_t stride) {
  const auto a = hn::InterleaveLower(d, r0, r2), b = hn::InterleaveUpper(d, r0, r2);
  const auto c = hn::InterleaveLower(d, r1, r3), e = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, a, c), d, to);
  hn::StoreU(hn::InterleaveUpper(d, a, c), d, to + stride);
  hn::StoreU(hn::InterleaveLower(d, b, e), d, to + 2 * stride);
  hn::StoreU(hn::InterleaveUpper(d, b, e), d, to + 3 * stride);
}

// A word a column: one float, or a pair of bfloat16 that are neighbours in depth.
using Words = hn::FixedTag<uint32_t, 4>;

HWY_INLINE hn::Vec<Words> load_words(const float* from, const float*) {
  return hn::LoadU(Words(), reinterpret_cast<const uint32_t*>(from));
}
HWY_INLINE hn::Vec<Words> load_words(const float* from, const BFloat16*) {
  const hn::FixedTag<float, 4> df;
  const auto low = rounded_bits(df, hn::LoadU(df, from));
  const auto high = rounded_bits(df, hn::LoadU(df, from + 4));
  const auto even = hn::ConcatEven(Words(), high, low), odd = hn::ConcatOdd(Words(), high, low);
  return hn::Or(hn::ShiftRight<16>(even), odd);
}

// Squares of 16 x 16: whole cache lines are read and written, and each row of W is read from left
// to right, as the hardware's prefetch likes it.
constexpr int64_t kSquare = 16;

template <typename T>
void transposed_square(const float* HWY_RESTRICT w, int64_t inputs, int64_t k0, int64_t n0,
                       int64_t n1, const Panel<T>& p) {
  const T* type = nullptr;
  for (int64_t k = k0; k < k0 + kSquare; k += 4 * p.pair) {
    for (int64_t n = n0; n < n1; n += 4) {
      const float* rows = w + n * inputs + k;
      store_transposed(Words(), load_words(rows, type), load_words(rows + inputs, type),
                       load_words(rows + 2 * inputs, type), load_words(rows + 3 * inputs, type),
                       reinterpret_cast<uint32_t*>(p.at(k, n)), p.width);
    }
  }
}

template <typename T>
void transposed(const float* HWY_RESTRICT w, int64_t inputs, const Panel<T>& p) {
  const int64_t whole = inputs - inputs % kSquare;
  const int64_t quads = p.begin + (p.end - p.begin) / 4 * 4;
  for (int64_t n = p.begin; n < quads; n += kSquare) {
    for (int64_t k = 0; k < whole; k += kSquare) {
      transposed_square(w, inputs, k, n, std::min(quads, n + kSquare), p);
    }
  }
  for (int64_t n = p.begin; n < p.end; ++n) {
    for (int64_t k = n < quads ? whole : 0; k < inputs; ++k) {
      store_element(w[n * inputs + k], p.at(k, n));
    }
  }
}

void straight(const WeightRows& rows, const Panel<float>& p) {
  for (int64_t k = rows.begin; k < rows.end; ++k) {
    const float* row = rows.weight + k * rows.inputs;
    std::copy(row + p.begin, row + p.end, p.at(k, p.begin));
  }
}

void straight(const WeightRows& rows, const Panel<BFloat16>& p) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const int64_t vectors = p.begin + (p.end - p.begin) / lanes * lanes;
  const int64_t pairs = rows.end - (rows.end - rows.begin) % 2;
  for (int64_t k = rows.begin; k < pairs; k += 2) {
    const float *even = rows.weight + k * rows.inputs, *odd = even + rows.inputs;
    for (int64_t n = p.begin; n < vectors; n += lanes) {
      const auto low = hn::ShiftRight<16>(rounded_bits(df, hn::LoadU(df, even + n)));
      const auto high = rounded_bits(df, hn::LoadU(df, odd + n));
      hn::StoreU(hn::Or(low, high), du, reinterpret_cast<uint32_t*>(p.at(k, n)));
    }
  }
  for (int64_t k = rows.begin; k < rows.end; ++k) {
    for (int64_t n = k < pairs ? vectors : p.begin; n < p.end; ++n) {
      store_element(rows.weight[k * rows.inputs + n], p.at(k, n));
    }
  }
}

// Calls body for each panel's part of the columns [begin, end).
template <typename T, typename Body>
void for_panels(void* panels, int64_t begin, int64_t end, const PanelLayout& layout,
                const Body& body) {
  while (begin < end) {
    const int64_t panel = begin / layout.width;
    const int64_t stop = std::min(end, (panel + 1) * layout.width);
    body(Panel<T>{static_cast<T*>(panels) + panel * layout.panel_stride, panel * layout.width,
                  begin, stop, layout.width, layout.pair});
    begin = stop;
  }
}

void pack_transposed(const WeightRows& rows, const PanelLayout& layout, Precision precision,
                     void* panels) {
  const auto write = [&](const auto& panel) { transposed(rows.weight, rows.inputs, panel); };
  if (precision == Precision::float32) {
    for_panels<float>(panels, rows.begin, rows.end, layout, write);
  } else {
    for_panels<BFloat16>(panels, rows.begin, rows.end, layout, write);
  }
}

void pack_straight(const WeightRows& rows, const PanelLayout& layout, Precision precision,
                   void* panels) {
  const auto write = [&](const auto& panel) { straight(rows, panel); };
  if (precision == Precision::float32) {
    for_panels<float>(panels, 0, rows.inputs, layout, write);
  } else {
    for_panels<BFloat16>(panels, 0, rows.inputs, layout, write);
  }
}

}  // namespace recmill::kernels::dense_layer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels::dense_layer {
HWY_EXPORT(pack_transposed);
HWY_EXPORT(pack_straight);
namespace {

// The vector code holds a word a column: float32 alone, bfloat16 in pairs.
void check(const WeightRows& rows, const PanelLayout& layout, Precision precision) {
  RECMILL_CHECK(layout.pair == (precision == Precision::float32 ? 1 : 2));
  RECMILL_CHECK(rows.begin % 2 == 0 && rows.begin <= rows.end && rows.end <= rows.outputs);
  RECMILL_CHECK(rows.end % 2 == 0 || rows.end == rows.outputs);
}

}  // namespace

void pack_transposed(const WeightRows& rows, const PanelLayout& layout, Precision precision,
                     void* panels) {
  check(rows, layout, precision);
  HWY_DYNAMIC_DISPATCH(pack_transposed)(rows, layout, precision, panels);
}

void pack_straight(const WeightRows& rows, const PanelLayout& layout, Precision precision,
                   void* panels) {
  check(rows, layout, precision);
  HWY_DYNAMIC_DISPATCH(pack_straight)(rows, layout, precision, panels);
}

}  // namespace recmill::kernels::dense_layer
#endif  // HWY_ONCE
