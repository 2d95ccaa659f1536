// SPDX-License-Identifier: Apache-2.0
// DLRM's dot interaction (Naumov et al., 2019, section 2.1) without self terms, and its gradient.
//
// Of one sample with vectors v[0], v[1], ... of `dim` floats, where v[0] is the bottom layers'
// output when there is one, and the rest are the features' pooled rows:
//
//   out = v[0], then dot(v[i], v[j]) for i > j in the order (1,0), (2,0), (2,1), (3,0), ...
//   dv[i] = (i == 0 ? dout[0, dim) : 0) + sum over j != i of dout(i, j) v[j]
//
// without v[0]'s copy where there are no bottom layers. The order is that of the lower triangle of
// PyTorch's tril_indices(offset = -1).
//
// Order of summation: each sample alone; dot folds over the elements, and dv[i] over j from 0 up,
// from left to right, one multiply-add an element (fused on instruction sets that have it). Sums
// are float32 in both precisions.
//
// Layout: `out` and the bottom layers' output, with their gradients, are as the dense layers want
// them (dense_layer.h): by feature in float32, by sample in bfloat16. Rows are by sample.
#pragma once

#include <cstdint>

#include "kernels/precision.h"

namespace recmill::kernels::interaction {

struct InteractionSpec {
  int64_t features = 0;
  int64_t dim = 0;                           // > 0
  bool bottom = true;                        // whether there is a bottom output
  Precision precision = Precision::float32;  // of out and dout

  int64_t vectors() const { return features + (bottom ? 1 : 0); }
  int64_t pairs() const { return vectors() * (vectors() - 1) / 2; }
  int64_t copied() const { return bottom ? dim : 0; }
  int64_t outputs() const { return copied() + pairs(); }
  bool by_feature() const { return precision == Precision::float32; }
};

/// The vectors of all samples; feature f of sample i at rows + i * row_stride + f * dim.
struct Vectors {
  const float* bottom = nullptr;  // [dim][samples] or [samples][dim], or null
  const float* rows = nullptr;
  int64_t row_stride = 0;  // floats
};
struct VectorGradients {
  float* bottom = nullptr;  // as Vectors::bottom
  float* rows = nullptr;    // laid out as Vectors::rows
  int64_t row_stride = 0;   // floats
};

/// Floats of zeroed scratch memory that forward() and backward() want, one a thread.
int64_t scratch_size(const InteractionSpec& spec);

/// out: [outputs][samples] or [samples][outputs].
void forward(const InteractionSpec& spec, int64_t samples, const Vectors& vectors, void* out,
             float* scratch);
/// out_gradient: as out. Overwrites the gradients.
void backward(const InteractionSpec& spec, int64_t samples, const Vectors& vectors,
              const void* out_gradient, const VectorGradients& gradients, float* scratch);

namespace reference {

/// The formulas above as loops, sums in float64.
void forward(const InteractionSpec& spec, int64_t samples, const Vectors& vectors, void* out);
void backward(const InteractionSpec& spec, int64_t samples, const Vectors& vectors,
              const void* out_gradient, const VectorGradients& gradients);

}  // namespace reference

}  // namespace recmill::kernels::interaction
