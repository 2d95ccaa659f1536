// SPDX-License-Identifier: Apache-2.0
// Matrices by sample and by feature: a family of its own, as models turn what kernels of either
// layout hand on.
#pragma once

#include <cstdint>

namespace recmill::kernels::transpose {

/// to[c][r] = from[r][c], `to` [columns][rows], `from` [rows][columns], which do not overlap.
void transpose_matrix(int64_t rows, int64_t columns, const float* from, float* to);

}  // namespace recmill::kernels::transpose
