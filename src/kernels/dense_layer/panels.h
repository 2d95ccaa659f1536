// SPDX-License-Identifier: Apache-2.0
// Weights as the products read them: panels of neighbouring columns.
#pragma once

#include <cstdint>

#include "kernels/precision.h"

namespace recmill::kernels::dense_layer {

/// A matrix B [depth][columns] in panels of `width` columns. Element (k, n) stands at
///   n / width * panel_stride + (k / pair * width + n % width) * pair + k % pair.
/// What pads a panel is zero, and stays what it was.
struct PanelLayout {
  int64_t width = 0;         // columns of a panel
  int64_t pair = 1;          // 2: neighbours in depth stand beside each other (bfloat16)
  int64_t panel_stride = 0;  // elements between panels
  int64_t panels = 0;
};

/// Writes panel p of B = W^T (for forward), where W is [outputs][inputs]: depth = inputs, columns =
/// outputs. `panels`: float32 or bfloat16 (rounded to nearest, ties to even).
void pack_transposed(const float* weight, int64_t outputs, int64_t inputs, int64_t panel,
                     const PanelLayout& layout, Precision precision, void* panels);

/// Writes panel p of B = W (for the data gradient): depth = outputs, columns = inputs.
void pack_straight(const float* weight, int64_t outputs, int64_t inputs, int64_t panel,
                   const PanelLayout& layout, Precision precision, void* panels);

}  // namespace recmill::kernels::dense_layer
