// SPDX-License-Identifier: Apache-2.0
// Matrices as the products read them: panels of neighbouring columns.
#pragma once

#include <cstdint>

#include "kernels/precision.h"

namespace recmill::kernels::dense_layer {

/// A matrix B [depth][columns] in panels of `width` columns. Element (k, n) is at
///   n / width * panel_stride + (k / pair * width + n % width) * pair + k % pair.
/// What pads a panel is zero, and stays what it was.
struct PanelLayout {
  int64_t width = 0;         // columns of a panel
  int64_t pair = 1;          // 2: neighbours in depth are beside each other (bfloat16)
  int64_t panel_stride = 0;  // elements between panels
};

/// Rows [begin, end) of a matrix W [outputs][inputs]; `begin` is even.
struct MatrixRows {
  const float* data = nullptr;
  int64_t outputs = 0;
  int64_t inputs = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

/// Writes these rows' part of B = W^T: depth = inputs, columns = outputs. `panels`: float32, or
/// bfloat16 (rounded to nearest, ties to even). For bfloat16's forward, W being weights; in float32
/// for the weight gradient, W being a block's inputs by feature.
void pack_transposed(const MatrixRows& rows, const PanelLayout& layout, Precision precision,
                     void* panels);

/// Writes these rows' part of B = W (for bfloat16's data gradient): depth = outputs, columns =
/// inputs. `panels`: bfloat16.
void pack_straight(const MatrixRows& rows, const PanelLayout& layout, void* panels);

}  // namespace recmill::kernels::dense_layer
