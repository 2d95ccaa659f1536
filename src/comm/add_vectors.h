// SPDX-License-Identifier: Apache-2.0
// Sums of a few vectors, element by element, in vectors of each instruction set.
#pragma once

#include <cstdint>

namespace recmill {

/// out[i] = the balanced tree's sum of parts[0][i] ... parts[n - 1][i], n in {2, 4, 8}:
/// (parts[0] + parts[1]) + (parts[2] + parts[3]) ... `out` may be one of the parts.
void add_vectors(const float* const* parts, int n, float* out, int64_t count);
void add_vectors(const double* const* parts, int n, double* out, int64_t count);

}  // namespace recmill
