// SPDX-License-Identifier: Apache-2.0
// How many threads a kernel is launched with. Read by the compilers of kernels too.
#pragma once

namespace recmill {

struct GridExtent {
  unsigned x = 1, y = 1, z = 1;
  constexpr long count() const { return static_cast<long>(x) * y * z; }
};

struct Grid {
  GridExtent blocks, threads;        // of the grid; of a block, at most 1,024
  unsigned long dynamic_shared = 0;  // bytes of a block
};

}  // namespace recmill
