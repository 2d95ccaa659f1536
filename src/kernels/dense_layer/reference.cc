// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_layer/reference.h"

#include "base/bfloat16.h"

namespace recmill::kernels::dense_layer::reference {
namespace {

float read(const void* data, Precision precision, int64_t index) {
  if (precision == Precision::float32) return static_cast<const float*>(data)[index];
  return to_float(static_cast<const BFloat16*>(data)[index]);
}

void write(void* data, Precision precision, int64_t index, double value) {
  if (precision == Precision::float32) {
    static_cast<float*>(data)[index] = static_cast<float>(value);
  } else {
    static_cast<BFloat16*>(data)[index] = to_bfloat16(static_cast<float>(value));
  }
}

// An operand of a product.
double operand(Precision precision, float value) {
  return precision == Precision::float32 ? value : to_float(to_bfloat16(value));
}

// g of dense_layer.h.
double gradient(const LayerSpec& s, const BackwardArguments& a, int64_t sample, int64_t output) {
  const int64_t at = sample * s.outputs + output;
  if (s.activation == Activation::relu && !(read(a.y, s.output_precision, at) > 0)) return 0;
  return operand(s.precision, read(a.dy, s.output_precision, at));
}

}  // namespace

void forward(const LayerSpec& s, int64_t samples, const void* x, const float* weight,
             const float* bias, void* y) {
  for (int64_t i = 0; i < samples; ++i) {
    for (int64_t o = 0; o < s.outputs; ++o) {
      double sum = bias[o];
      for (int64_t k = 0; k < s.inputs; ++k) {
        sum +=
            read(x, s.precision, i * s.inputs + k) * operand(s.precision, weight[o * s.inputs + k]);
      }
      if (s.activation == Activation::relu && sum < 0) sum = 0;
      write(y, s.output_precision, i * s.outputs + o, sum);
    }
  }
}

void backward(const LayerSpec& s, int64_t samples, const float* weight,
              const BackwardArguments& a) {
  for (int64_t o = 0; o < s.outputs; ++o) {
    double bias_sum = a.accumulate ? a.bias_gradient[o] : 0;
    for (int64_t i = 0; i < samples; ++i) bias_sum += gradient(s, a, i, o);
    a.bias_gradient[o] = static_cast<float>(bias_sum);
    for (int64_t k = 0; k < s.inputs; ++k) {
      float& cell = a.weight_gradient[o * s.inputs + k];
      double sum = a.accumulate ? cell : 0;
      for (int64_t i = 0; i < samples; ++i) {
        sum += gradient(s, a, i, o) * read(a.x, s.precision, i * s.inputs + k);
      }
      cell = static_cast<float>(sum);
    }
  }
  if (!s.needs_input_gradient) return;
  for (int64_t i = 0; i < samples; ++i) {
    for (int64_t k = 0; k < s.inputs; ++k) {
      double sum = 0;
      for (int64_t o = 0; o < s.outputs; ++o) {
        sum += gradient(s, a, i, o) * operand(s.precision, weight[o * s.inputs + k]);
      }
      write(a.dx, s.precision, i * s.inputs + k, sum);
    }
  }
}

}  // namespace recmill::kernels::dense_layer::reference
