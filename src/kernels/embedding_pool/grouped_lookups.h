// SPDX-License-Identifier: Apache-2.0
// A stretch of a feature's lookups in the order of the rows that they name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/embedding_pool/embedding_pool.h"

namespace recmill::kernels {

/// A key is a row's number above the lookup's place in the stretch.
constexpr int kPlaceBits = 16;
constexpr uint64_t kPlaceMask = (uint64_t{1} << kPlaceBits) - 1;

struct GroupedLookups {
  std::span<const uint64_t> keys;  // ascending by row, then by place
  const int64_t* samples;          // by place
};

/// Bytes of scratch for stretches of `most` lookups, at most 2^kPlaceBits.
constexpr int64_t grouped_scratch_bytes(int64_t most) {
  return most * static_cast<int64_t>(2 * sizeof(uint64_t) + sizeof(int64_t));
}

/// Groups lookups [begin, end), at most `most` of them, in `scratch`. `sample`: one whose bag is
/// not behind `begin`; afterwards that of the last lookup.
GroupedLookups group_lookups(const PoolTask& task, int64_t begin, int64_t end, int64_t most,
                             int64_t& sample, std::byte* scratch);

}  // namespace recmill::kernels
