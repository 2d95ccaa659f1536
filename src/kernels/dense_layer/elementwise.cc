// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_layer/elementwise.h"

#include <algorithm>

#include "base/bfloat16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense_layer/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/precision_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::dense_layer::HWY_NAMESPACE {
using namespace precision_vectors::HWY_NAMESPACE;

// `rows` neighbouring samples at once, so that the sums are loaded and stored once for all of them.
template <int rows, typename Y, typename G>
void gradient_rows(const LayerSpec& spec, const Y* HWY_RESTRICT y, const Y* dy, G* g,
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

template <typename Y, typename G>
void gradient(const LayerSpec& spec, int64_t samples, const BackwardArguments& a, void* g_data) {
  const Y *y = static_cast<const Y*>(a.y), *dy = static_cast<const Y*>(a.dy);
  G* g = static_cast<G*>(g_data);
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

void activation_gradient(const LayerSpec& spec, int64_t samples, const BackwardArguments& arguments,
                         void* g) {
  const bool narrow_y = spec.output_precision == Precision::bfloat16;
  const bool narrow_g = spec.precision == Precision::bfloat16;
  const auto f = narrow_y   ? narrow_g ? gradient<BFloat16, BFloat16> : gradient<BFloat16, float>
                   : narrow_g ? gradient<float, BFloat16>
                            : gradient<float, float>;
  f(spec, samples, arguments, g);
}

template <typename T>
float dot(const T* HWY_RESTRICT x, const float* HWY_RESTRICT w, int64_t size) {
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

template <typename T>
void output_forward(const LayerSpec& spec, int64_t samples, const void* x_data, const float* weight,
                    float bias, void* y) {
  const T* x = static_cast<const T*>(x_data);
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

void single_output_forward(const LayerSpec& spec, int64_t samples, const void* x,
                           const float* weight, float bias, void* y) {
  const auto f =
      spec.precision == Precision::float32 ? output_forward<float> : output_forward<BFloat16>;
  f(spec, samples, x, weight, bias, y);
}

template <typename T>
void output_backward(const LayerSpec& spec, int64_t samples, const float* HWY_RESTRICT weight,
                     const void* g_data, const BackwardArguments& a) {
  const hn::ScalableTag<float> df;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const T *x = static_cast<const T*>(a.x), *g = static_cast<const T*>(g_data);
  T* dx = static_cast<T*>(a.dx);
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

void single_output_backward(const LayerSpec& spec, int64_t samples, const float* weight,
                            const void* g, const BackwardArguments& arguments) {
  BackwardArguments a = arguments;
  if (!spec.needs_input_gradient) a.dx = nullptr;
  const auto f =
      spec.precision == Precision::float32 ? output_backward<float> : output_backward<BFloat16>;
  f(spec, samples, weight, g, a);
}

}  // namespace recmill::kernels::dense_layer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels::dense_layer {
HWY_EXPORT(activation_gradient);
HWY_EXPORT(single_output_forward);
HWY_EXPORT(single_output_backward);

void activation_gradient(const LayerSpec& spec, int64_t samples, const BackwardArguments& arguments,
                         void* g) {
  HWY_DYNAMIC_DISPATCH(activation_gradient)(spec, samples, arguments, g);
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
