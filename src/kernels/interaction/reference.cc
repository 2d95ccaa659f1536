// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <vector>

#include "base/bfloat16.h"
#include "kernels/interaction/interaction.h"

namespace recmill::kernels::interaction::reference {
namespace {

template <typename Floats, typename Set>
auto vector_of(const InteractionSpec& s, const Set& set, int64_t sample, int64_t v) -> Floats* {
  if (s.bottom && v == 0) return set.bottom + sample * s.dim;
  return set.rows + sample * set.row_stride + (v - (s.bottom ? 1 : 0)) * s.dim;
}

}  // namespace

void forward(const InteractionSpec& s, int64_t samples, const Vectors& vectors, void* out) {
  int64_t at = 0;
  const auto write = [&](double value) {
    if (s.precision == Precision::float32) {
      static_cast<float*>(out)[at++] = static_cast<float>(value);
    } else {
      static_cast<BFloat16*>(out)[at++] = to_bfloat16(static_cast<float>(value));
    }
  };
  for (int64_t sample = 0; sample < samples; ++sample) {
    for (int64_t d = 0; s.bottom && d < s.dim; ++d) write(vectors.bottom[sample * s.dim + d]);
    for (int64_t i = 0; i < s.vectors(); ++i) {
      for (int64_t j = 0; j < i; ++j) {
        double dot = 0;
        for (int64_t d = 0; d < s.dim; ++d) {
          dot += double{vector_of<const float>(s, vectors, sample, i)[d]} *
                 vector_of<const float>(s, vectors, sample, j)[d];
        }
        write(dot);
      }
    }
  }
}

void backward(const InteractionSpec& s, int64_t samples, const Vectors& vectors,
              const void* out_gradient, const VectorGradients& gradients) {
  int64_t at = 0;
  const auto read = [&] {
    if (s.precision == Precision::float32) return static_cast<const float*>(out_gradient)[at++];
    return to_float(static_cast<const BFloat16*>(out_gradient)[at++]);
  };
  for (int64_t sample = 0; sample < samples; ++sample) {
    std::vector<double> sums(static_cast<size_t>(s.vectors() * s.dim));
    const auto sum = [&](int64_t v, int64_t d) -> double& {
      return sums[static_cast<size_t>(v * s.dim + d)];
    };
    for (int64_t d = 0; s.bottom && d < s.dim; ++d) sum(0, d) = read();
    for (int64_t i = 0; i < s.vectors(); ++i) {
      for (int64_t j = 0; j < i; ++j) {
        const double g = read();
        for (int64_t d = 0; d < s.dim; ++d) {
          sum(i, d) += g * vector_of<const float>(s, vectors, sample, j)[d];
          sum(j, d) += g * vector_of<const float>(s, vectors, sample, i)[d];
        }
      }
    }
    for (int64_t v = 0; v < s.vectors(); ++v) {
      for (int64_t d = 0; d < s.dim; ++d) {
        vector_of<float>(s, gradients, sample, v)[d] = static_cast<float>(sum(v, d));
      }
    }
  }
}

}  // namespace recmill::kernels::interaction::reference
