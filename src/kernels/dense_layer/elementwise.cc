// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_layer/elementwise.h"

#include <algorithm>

#include "base/bfloat16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense_layer/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/precision_vectors-inl.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::dense_layer::HWY_NAMESPACE {
using namespace precision_vectors::HWY_NAMESPACE;
using transpose::HWY_NAMESPACE::transpose_columns;

// g over dy, each [outputs][samples].
void mask(int64_t size, const float* HWY_RESTRICT y, float* HWY_RESTRICT dy) {
  const hn::ScalableTag<float> df;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  int64_t k = 0;
  for (; k + lanes <= size; k += lanes) {
    const auto passes = hn::Gt(hn::LoadU(df, y + k), hn::Zero(df));
    hn::StoreU(hn::IfThenElseZero(passes, hn::LoadU(df, dy + k)), df, dy + k);
  }
  for (; k < size; ++k) dy[k] = y[k] > 0 ? dy[k] : 0;
}

// sums[r] += the fold over g[r][0, samples), for as many rows r as a vector has lanes.
template <class D>
void add_rows(D df, const float* HWY_RESTRICT g, int64_t samples, float* HWY_RESTRICT sums) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const hn::FixedTag<float, 4> four;
  const int64_t whole = samples - samples % 4;
  auto sum = hn::LoadU(df, sums);
  for (int64_t i = 0; i < whole; i += 4) {
    transpose_columns(
        df, [&](int64_t r) HWY_ATTR { return hn::LoadU(four, g + r * samples + i); },
        [&](int64_t, auto column) HWY_ATTR { sum = hn::Add(sum, column); });
  }
  hn::StoreU(sum, df, sums);
  for (int64_t i = whole; i < samples; ++i) {
    for (int64_t r = 0; r < lanes; ++r) sums[r] += g[r * samples + i];
  }
}

void gradient_by_feature(const LayerSpec& spec, int64_t samples, const BackwardArguments& a) {
  const hn::CappedTag<float, 16> df;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const float* y = static_cast<const float*>(a.y);
  float *g = static_cast<float*>(a.dy), *sums = a.bias_gradient;
  if (!a.accumulate) std::fill_n(sums, spec.outputs, 0.0f);
  for (int64_t o = 0; o < spec.outputs; o += lanes) {
    const int64_t rows = std::min(lanes, spec.outputs - o), at = o * samples;
    if (spec.activation == Activation::relu) mask(rows * samples, y + at, g + at);
    if (rows == lanes) {
      add_rows(df, g + at, samples, sums + o);
      continue;
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < samples; ++i) sums[o + r] += g[at + r * samples + i];
    }
  }
}

// `rows` neighbouring samples at once, so that the sums are loaded and stored once for all of them.
template <int rows, typename Y>
void gradient_rows(const LayerSpec& spec, const Y* HWY_RESTRICT y, const Y* dy, BFloat16* g,
                   float* HWY_RESTRICT sums) {
  const hn::ScalableTag<float> df;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const bool relu = spec.activation == Activation::relu;
  int64_t o = 0;
  for (; o + lanes <= spec.outputs; o += lanes) {
    auto sum = hn::LoadU(df, sums + o);
    for (int r = 0; r < rows; ++r) {
      const int64_t at = r * spec.outputs + o;
      auto v = load_elements(df, dy + at);
      if (relu) v = hn::IfThenElseZero(hn::Gt(load_elements(df, y + at), hn::Zero(df)), v);
      sum = hn::Add(sum, store_elements(df, v, g + r * spec.outputs + o));
    }
    hn::StoreU(sum, df, sums + o);
  }
  for (; o < spec.outputs; ++o) {
    for (int r = 0; r < rows; ++r) {
      const int64_t at = r * spec.outputs + o;
      const bool passes = !relu || load_element(y + at) > 0;
      sums[o] += store_element(passes ? load_element(dy + at) : 0, g + r * spec.outputs + o);
    }
  }
}

template <typename Y>
void gradient(const LayerSpec& spec, int64_t samples, const BackwardArguments& a, void* g_data) {
  const Y *y = static_cast<const Y*>(a.y), *dy = static_cast<const Y*>(a.dy);
  BFloat16* g = static_cast<BFloat16*>(g_data);
  if (!a.accumulate) std::fill_n(a.bias_gradient, spec.outputs, 0.0f);
  int64_t i = 0;
  for (; i + 4 <= samples; i += 4) {
    const int64_t at = i * spec.outputs;
    gradient_rows<4>(spec, y + at, dy + at, g + i * spec.outputs, a.bias_gradient);
  }
  for (; i < samples; ++i) {
    const int64_t at = i * spec.outputs;
    gradient_rows<1>(spec, y + at, dy + at, g + i * spec.outputs, a.bias_gradient);
  }
}

void gradient_by_sample(const LayerSpec& spec, int64_t samples, const BackwardArguments& arguments,
                        void* g) {
  const bool narrow = spec.output_precision == Precision::bfloat16;
  (narrow ? gradient<BFloat16> : gradient<float>)(spec, samples, arguments, g);
}

float dot(const BFloat16* HWY_RESTRICT x, const float* HWY_RESTRICT w, int64_t size) {
  const hn::ScalableTag<float> df;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  auto a = hn::Zero(df), b = hn::Zero(df);
  int64_t k = 0;
  for (; k + 2 * lanes <= size; k += 2 * lanes) {
    a = hn::MulAdd(load_elements(df, x + k), hn::LoadU(df, w + k), a);
    b = hn::MulAdd(load_elements(df, x + k + lanes), hn::LoadU(df, w + k + lanes), b);
  }
  float sum = hn::GetLane(hn::SumOfLanes(df, hn::Add(a, b)));
  for (; k < size; ++k) sum += load_element(x + k) * w[k];
  return sum;
}

void single_output_forward(const LayerSpec& spec, int64_t samples, const void* x_data,
                           const float* weight, float bias, void* y) {
  const BFloat16* x = static_cast<const BFloat16*>(x_data);
  for (int64_t i = 0; i < samples; ++i) {
    float value = dot(x + i * spec.inputs, weight, spec.inputs) + bias;
    if (spec.activation == Activation::relu) value = std::max(value, 0.0f);
    const int64_t at = i * spec.outputs;
    if (spec.output_precision == Precision::float32) {
      static_cast<float*>(y)[at] = value;
    } else {
      static_cast<BFloat16*>(y)[at] = to_bfloat16(value);
    }
  }
}

void single_output_backward(const LayerSpec& spec, int64_t samples,
                            const float* HWY_RESTRICT weight, const void* g_data,
                            const BackwardArguments& a) {
  const hn::ScalableTag<float> df;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto *x = static_cast<const BFloat16*>(a.x), *g = static_cast<const BFloat16*>(g_data);
  auto* dx = spec.needs_input_gradient ? static_cast<BFloat16*>(a.dx) : nullptr;
  float* HWY_RESTRICT dw = a.weight_gradient;
  if (!a.accumulate) std::fill_n(dw, spec.inputs, 0.0f);
  int64_t k = 0;
  for (; k + lanes <= spec.inputs; k += lanes) {
    const auto w = hn::LoadU(df, weight + k);
    auto sum = hn::LoadU(df, dw + k);
    for (int64_t i = 0; i < samples; ++i) {
      const auto gradient = hn::Set(df, load_element(g + i));
      sum = hn::MulAdd(gradient, load_elements(df, x + i * spec.inputs + k), sum);
      if (dx) store_elements(df, hn::Mul(gradient, w), dx + i * spec.inputs + k);
    }
    hn::StoreU(sum, df, dw + k);
  }
  for (; k < spec.inputs; ++k) {
    for (int64_t i = 0; i < samples; ++i) {
      const float gradient = load_element(g + i);
      dw[k] += gradient * load_element(x + i * spec.inputs + k);
      if (dx) store_element(gradient * weight[k], dx + i * spec.inputs + k);
    }
  }
}

}  // namespace recmill::kernels::dense_layer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels::dense_layer {
HWY_EXPORT(gradient_by_feature);
HWY_EXPORT(gradient_by_sample);
HWY_EXPORT(single_output_forward);
HWY_EXPORT(single_output_backward);

void gradient_by_feature(const LayerSpec& spec, int64_t samples,
                         const BackwardArguments& arguments) {
  HWY_DYNAMIC_DISPATCH(gradient_by_feature)(spec, samples, arguments);
}

void gradient_by_sample(const LayerSpec& spec, int64_t samples, const BackwardArguments& arguments,
                        void* g) {
  HWY_DYNAMIC_DISPATCH(gradient_by_sample)(spec, samples, arguments, g);
}

void single_output_forward(const LayerSpec& spec, int64_t samples, const void* x,
                           const float* weight, float bias, void* y) {
  HWY_DYNAMIC_DISPATCH(single_output_forward)(spec, samples, x, weight, bias, y);
}

void single_output_backward(const LayerSpec& spec, int64_t samples, const float* weight,
                            const void* g, const BackwardArguments& arguments) {
  HWY_DYNAMIC_DISPATCH(single_output_backward)(spec, samples, weight, g, arguments);
}

}  // namespace recmill::kernels::dense_layer
#endif  // HWY_ONCE
