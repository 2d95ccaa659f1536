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
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::dense_layer::HWY_NAMESPACE {
using namespace precision_vectors::HWY_NAMESPACE;
using transpose::HWY_NAMESPACE::transpose_columns;

// Columns [begin, end) of B, all in the panel that starts at `data` with column `first`.
template <typename T>
struct Panel {
  T* data;
  int64_t first, begin, end, width, pair;
  T* at(int64_t k, int64_t n) const {
    return data + (k / pair * width + n - first) * pair + k % pair;
  }
};

// A word a column: one float, or a pair of bfloat16 that are neighbours in depth.
template <int lanes>
using Words = hn::FixedTag<uint32_t, lanes>;

HWY_INLINE hn::Vec<Words<4>> load_words(const float* from, const float*) {
  return hn::LoadU(Words<4>(), reinterpret_cast<const uint32_t*>(from));
}
HWY_INLINE hn::Vec<Words<4>> load_words(const float* from, const BFloat16*) {
  const hn::FixedTag<float, 4> df;
  const auto low = rounded_bits(df, hn::LoadU(df, from));
  const auto high = rounded_bits(df, hn::LoadU(df, from + 4));
  const auto even = hn::ConcatEven(Words<4>(), high, low);
  const auto odd = hn::ConcatOdd(Words<4>(), high, low);
  return hn::Or(hn::ShiftRight<16>(even), odd);
}

// `lanes` columns from n on, and all depths below `whole`.
template <int lanes, typename T>
void transposed_columns(const float* HWY_RESTRICT w, int64_t inputs, int64_t whole, int64_t n,
                        const Panel<T>& p) {
  const Words<lanes> words;
  const T* type = nullptr;
  for (int64_t k = 0; k < whole; k += 4 * p.pair) {
    const float* rows = w + n * inputs + k;
    auto* to = reinterpret_cast<uint32_t*>(p.at(k, n));
    transpose_columns(
        words, [&](int64_t row) HWY_ATTR { return load_words(rows + row * inputs, type); },
        [&](int64_t c, auto column) HWY_ATTR { hn::StoreU(column, words, to + c * p.width); });
  }
}

template <typename T>
void transposed(const float* HWY_RESTRICT w, int64_t inputs, const Panel<T>& p) {
  constexpr int kLanes = HWY_MIN(16, HWY_LANES(float));
  const int64_t whole = inputs - inputs % (4 * p.pair);
  int64_t n = p.begin;
  for (; n + kLanes <= p.end; n += kLanes) transposed_columns<kLanes>(w, inputs, whole, n, p);
  for (; n + 4 <= p.end; n += 4) transposed_columns<4>(w, inputs, whole, n, p);
  for (int64_t c = p.begin; c < p.end; ++c) {
    for (int64_t k = c < n ? whole : 0; k < inputs; ++k) {
      store_element(w[c * inputs + k], p.at(k, c));
    }
  }
}

void straight(const MatrixRows& rows, const Panel<BFloat16>& p) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const int64_t vectors = p.begin + (p.end - p.begin) / lanes * lanes;
  const int64_t pairs = rows.end - (rows.end - rows.begin) % 2;
  for (int64_t k = rows.begin; k < pairs; k += 2) {
    const float *even = rows.data + k * rows.inputs, *odd = even + rows.inputs;
    for (int64_t n = p.begin; n < vectors; n += lanes) {
      const auto low = hn::ShiftRight<16>(rounded_bits(df, hn::LoadU(df, even + n)));
      const auto high = rounded_bits(df, hn::LoadU(df, odd + n));
      hn::StoreU(hn::Or(low, high), du, reinterpret_cast<uint32_t*>(p.at(k, n)));
    }
  }
  for (int64_t k = rows.begin; k < rows.end; ++k) {
    for (int64_t n = k < pairs ? vectors : p.begin; n < p.end; ++n) {
      store_element(rows.data[k * rows.inputs + n], p.at(k, n));
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

void pack_transposed(const MatrixRows& rows, const PanelLayout& layout, Precision precision,
                     void* panels) {
  const auto write = [&](const auto& panel) { transposed(rows.data, rows.inputs, panel); };
  if (precision == Precision::float32) {
    for_panels<float>(panels, rows.begin, rows.end, layout, write);
  } else {
    for_panels<BFloat16>(panels, rows.begin, rows.end, layout, write);
  }
}

void pack_straight(const MatrixRows& rows, const PanelLayout& layout, void* panels) {
  for_panels<BFloat16>(panels, 0, rows.inputs, layout,
                       [&](const auto& panel) { straight(rows, panel); });
}

}  // namespace recmill::kernels::dense_layer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels::dense_layer {
HWY_EXPORT(pack_transposed);
HWY_EXPORT(pack_straight);
namespace {

// The vector code holds a word a column: float32 alone, bfloat16 in pairs.
void check(const MatrixRows& rows, const PanelLayout& layout, Precision precision) {
  RECMILL_CHECK(layout.pair == (precision == Precision::float32 ? 1 : 2));
  RECMILL_CHECK(rows.begin % 2 == 0 && rows.begin <= rows.end && rows.end <= rows.outputs);
  RECMILL_CHECK(rows.end % 2 == 0 || rows.end == rows.outputs);
}

}  // namespace

void pack_transposed(const MatrixRows& rows, const PanelLayout& layout, Precision precision,
                     void* panels) {
  check(rows, layout, precision);
  HWY_DYNAMIC_DISPATCH(pack_transposed)(rows, layout, precision, panels);
}

void pack_straight(const MatrixRows& rows, const PanelLayout& layout, void* panels) {
  check(rows, layout, Precision::bfloat16);
  HWY_DYNAMIC_DISPATCH(pack_straight)(rows, layout, panels);
}

}  // namespace recmill::kernels::dense_layer
#endif  // HWY_ONCE
