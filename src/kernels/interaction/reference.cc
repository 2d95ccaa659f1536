// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <vector>

#include "base/bfloat16.h"
#include "kernels/interaction/interaction.h"

namespace recmill::kernels::interaction::reference {
namespace {

// Element d of vector v of a sample.
template <typename Set>
auto& element(const InteractionSpec& s, int64_t samples, const Set& set, int64_t sample, int64_t v,
              int64_t d) {
  if (s.bottom && v == 0)
    return set.bottom[s.by_feature() ? d * samples + sample : sample * s.dim + d];
  return set.rows[sample * set.row_stride + (v - (s.bottom ? 1 : 0)) * s.dim + d];
}

int64_t index_of(const InteractionSpec& s, int64_t samples, int64_t sample, int64_t output) {
  return s.by_feature() ? output * samples + sample : sample * s.outputs() + output;
}

}  // namespace

void forward(const InteractionSpec& s, int64_t samples, const Vectors& vectors, void* out) {
  for (int64_t sample = 0; sample < samples; ++sample) {
    int64_t output = 0;
    const auto write = [&](double value) {
      const int64_t at = index_of(s, samples, sample, output++);
      if (s.precision == Precision::float32) {
        static_cast<float*>(out)[at] = static_cast<float>(value);
      } else {
        static_cast<BFloat16*>(out)[at] = to_bfloat16(static_cast<float>(value));
      }
    };
    const auto v = [&](int64_t i, int64_t d) -> double {
      return element(s, samples, vectors, sample, i, d);
    };
    for (int64_t d = 0; d < s.copied(); ++d) write(v(0, d));
    for (int64_t i = 0; i < s.vectors(); ++i) {
      for (int64_t j = 0; j < i; ++j) {
        double dot = 0;
        for (int64_t d = 0; d < s.dim; ++d) dot += v(i, d) * v(j, d);
        write(dot);
      }
    }
  }
}

void backward(const InteractionSpec& s, int64_t samples, const Vectors& vectors,
              const void* out_gradient, const VectorGradients& gradients) {
  for (int64_t sample = 0; sample < samples; ++sample) {
    int64_t output = 0;
    const auto read = [&] {
      const int64_t at = index_of(s, samples, sample, output++);
      if (s.precision == Precision::float32) return static_cast<const float*>(out_gradient)[at];
      return to_float(static_cast<const BFloat16*>(out_gradient)[at]);
    };
    std::vector<double> sums(static_cast<size_t>(s.vectors() * s.dim));
    const auto sum = [&](int64_t v, int64_t d) -> double& {
      return sums[static_cast<size_t>(v * s.dim + d)];
    };
    for (int64_t d = 0; d < s.copied(); ++d) sum(0, d) = read();
    for (int64_t i = 0; i < s.vectors(); ++i) {
      for (int64_t j = 0; j < i; ++j) {
        const double g = read();
        for (int64_t d = 0; d < s.dim; ++d) {
          sum(i, d) += g * element(s, samples, vectors, sample, j, d);
          sum(j, d) += g * element(s, samples, vectors, sample, i, d);
        }
      }
    }
    for (int64_t v = 0; v < s.vectors(); ++v) {
      for (int64_t d = 0; d < s.dim; ++d) {
        element(s, samples, gradients, sample, v, d) = static_cast<float>(sum(v, d));
      }
    }
  }
}

}  // namespace recmill::kernels::interaction::reference
