// SPDX-License-Identifier: Apache-2.0
// Runtime thread mapping of embedding_pool on GPUs (RecFlex, section IV-B): which blocks a feature
// gets, from its actual bags. Goes with compiled operators as text too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "batch/sparse_batch.h"
#include "kernels/embedding_pool/gpu_pool_arguments.h"

namespace recmill::kernels {

/// How a feature's samples are cut into parts for blocks.
struct GpuParts {
  int64_t samples = 0;  // of a part; 0: see below
  int64_t lookups = 0;  // of a part, where a part is of lookups, not of samples
  int64_t piece = 0;    // lookups of a block, where a sample is a part of several blocks
};

/// Appends the blocks of one feature of a batch.
inline void map_gpu_blocks(const JaggedView& bags, const GpuParts& parts, int32_t feature,
                           std::vector<gpu::PoolBlock>& blocks) {
  const auto cut = [](int64_t all, int64_t of_part) { return (all + of_part - 1) / of_part; };
  if (parts.piece == 0) {
    const int64_t count =
        parts.samples > 0 ? cut(bags.samples, parts.samples) : cut(bags.lookups(), parts.lookups);
    for (int64_t part = 0; part < count; ++part)
      blocks.push_back({feature, static_cast<int32_t>(part), 0, 1});
    return;
  }
  for (int64_t sample = 0; sample < bags.samples; ++sample) {
    const int64_t lookups = bags.offsets[sample + 1] - bags.offsets[sample];
    const auto pieces = static_cast<int32_t>(std::max<int64_t>(1, cut(lookups, parts.piece)));
    for (int32_t piece = 0; piece < pieces; ++piece)
      blocks.push_back({feature, static_cast<int32_t>(sample), piece, pieces});
  }
}

}  // namespace recmill::kernels
