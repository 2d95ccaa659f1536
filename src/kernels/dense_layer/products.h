// SPDX-License-Identifier: Apache-2.0
// Products of float32 matrices on the calling thread.
#pragma once

#include <cstdint>

#include "kernels/dense_layer/panels.h"

namespace recmill::kernels::dense_layer {

/// C [rows][columns] = A B, each element the fold over k from +0 of fma(A(m, k), B(k, n), sum)
/// (product and sum each rounded where the instruction set has no fma); then, in this order: plus
/// bias[m]; 0 where negative (a NaN stays); added to what C holds.
///
/// A is read once, a few rows (columns, where transposed) at a time, the next ones on their way
/// meanwhile: it may come from far. All of B is read for each of them, a part of its depth after
/// the other where it is too large to stay near (without `accumulate`).
struct Product {
  int64_t rows = 0, columns = 0, depth = 0;
  const float* a = nullptr;  // A(m, k) = a[m * a_stride + k]
  int64_t a_stride = 0;
  bool a_transposed = false;    // A(m, k) = a[k * a_stride + m]
  const float* b = nullptr;     // B(k, n) = b[k * columns + n]
  bool b_in_panels = false;     // in product_panels(depth)
  float* c = nullptr;           // C(m, n) = c[m * columns + n]
  const float* bias = nullptr;  // [rows], or null
  bool relu = false;
  bool accumulate = false;
};

/// How multiply() reads B [depth][columns] in panels.
constexpr PanelLayout product_panels(int64_t depth) {
  return {32, 1, 32 * depth};
}

void multiply(const Product& product);

}  // namespace recmill::kernels::dense_layer
