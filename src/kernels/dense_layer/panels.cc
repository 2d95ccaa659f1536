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

// The columns [begin, end) of one panel, which starts at `data`.
template <typename T>
struct Panel {
  T* data;
  int64_t begin, end, width, pair;
  T* at(int64_t k, int64_t n) const {
    return data + (k / pair * width + n - begin) * pair + k % pair;
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

// 16 in depth at a time: whole cache lines of W, and a part of the panel that stays in L1.
constexpr int64_t kDepth = 16;

template <typename T>
void transposed(const float* HWY_RESTRICT w, int64_t inputs, const Panel<T>& p) {
  const int64_t whole = inputs - inputs % kDepth;
  const int64_t quads = p.begin + (p.end - p.begin) / 4 * 4;
  const int64_t words = p.width;  // between neighbours in depth
  for (int64_t k0 = 0; k0 < whole; k0 += kDepth) {
    for (int64_t n = p.begin; n < quads; n += 4) {
      const float* rows = w + n * inputs + k0;
      for (int64_t k = 0; k < kDepth; k += 4 * p.pair) {
        const T* type = nullptr;
        store_transposed(Words(), load_words(rows + k, type), load_words(rows + inputs + k, type),
                         load_words(rows + 2 * inputs + k, type),
                         load_words(rows + 3 * inputs + k, type),
                         reinterpret_cast<uint32_t*>(p.at(k0 + k, n)), words);
      }
    }
  }
  for (int64_t n = p.begin; n < p.end; ++n) {
    for (int64_t k = n < quads ? whole : 0; k < inputs; ++k) {
      store_element(w[n * inputs + k], p.at(k, n));
    }
  }
}

void straight(const float* HWY_RESTRICT w, int64_t outputs, int64_t inputs, const Panel<float>& p) {
  for (int64_t k = 0; k < outputs; ++k) {
    std::copy(w + k * inputs + p.begin, w + k * inputs + p.end, p.at(k, p.begin));
  }
}

void straight(const float* HWY_RESTRICT w, int64_t outputs, int64_t inputs,
              const Panel<BFloat16>& p) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const int64_t vectors = p.pair == 2 ? p.begin + (p.end - p.begin) / lanes * lanes : p.begin;
  const int64_t pairs = outputs - outputs % 2;
  for (int64_t k = 0; k < pairs; k += 2) {
    const float *even = w + k * inputs, *odd = even + inputs;
    for (int64_t n = p.begin; n < vectors; n += lanes) {
      const auto low = hn::ShiftRight<16>(rounded_bits(df, hn::LoadU(df, even + n)));
      const auto high = rounded_bits(df, hn::LoadU(df, odd + n));
      hn::StoreU(hn::Or(low, high), du, reinterpret_cast<uint32_t*>(p.at(k, n)));
    }
  }
  for (int64_t k = 0; k < outputs; ++k) {
    for (int64_t n = k < pairs ? vectors : p.begin; n < p.end; ++n) {
      store_element(w[k * inputs + n], p.at(k, n));
    }
  }
}

template <typename T>
Panel<T> panel_of(void* panels, int64_t columns, int64_t panel, const PanelLayout& layout) {
  return {static_cast<T*>(panels) + panel * layout.panel_stride, panel * layout.width,
          std::min(columns, (panel + 1) * layout.width), layout.width, layout.pair};
}

void pack_transposed(const float* weight, int64_t outputs, int64_t inputs, int64_t panel,
                     const PanelLayout& layout, Precision precision, void* panels) {
  if (precision == Precision::float32) {
    transposed(weight, inputs, panel_of<float>(panels, outputs, panel, layout));
  } else {
    transposed(weight, inputs, panel_of<BFloat16>(panels, outputs, panel, layout));
  }
}

void pack_straight(const float* weight, int64_t outputs, int64_t inputs, int64_t panel,
                   const PanelLayout& layout, Precision precision, void* panels) {
  if (precision == Precision::float32) {
    straight(weight, outputs, inputs, panel_of<float>(panels, inputs, panel, layout));
  } else {
    straight(weight, outputs, inputs, panel_of<BFloat16>(panels, inputs, panel, layout));
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
void check(const PanelLayout& layout, Precision precision, int64_t panel) {
  RECMILL_CHECK(layout.pair == (precision == Precision::float32 ? 1 : 2));
  RECMILL_CHECK(panel >= 0 && panel < layout.panels);
}

}  // namespace

void pack_transposed(const float* weight, int64_t outputs, int64_t inputs, int64_t panel,
                     const PanelLayout& layout, Precision precision, void* panels) {
  check(layout, precision, panel);
  HWY_DYNAMIC_DISPATCH(pack_transposed)
  (weight, outputs, inputs, panel, layout, precision, panels);
}

void pack_straight(const float* weight, int64_t outputs, int64_t inputs, int64_t panel,
                   const PanelLayout& layout, Precision precision, void* panels) {
  check(layout, precision, panel);
  HWY_DYNAMIC_DISPATCH(pack_straight)
  (weight, outputs, inputs, panel, layout, precision, panels);
}

}  // namespace recmill::kernels::dense_layer
#endif  // HWY_ONCE
