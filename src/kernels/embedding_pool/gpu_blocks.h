// SPDX-License-Identifier: Apache-2.0
// Runtime thread mapping of embedding_pool on GPUs (RecFlex, section IV-B): which blocks a feature
// gets, from its actual bags. Goes with compiled operators as text too.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
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

/// What a block of a feature of `dim` columns reads and writes, in floats.
inline int64_t weight_of(const gpu::PoolBlock& block, const JaggedView& bags, const GpuParts& parts,
                         int64_t dim) {
  const auto between = [&](int64_t begin, int64_t end) {
    return bags.one_each ? end - begin : bags.offsets[end] - bags.offsets[begin];
  };
  int64_t lookups = 0, written = 0;  // rows
  if (parts.piece > 0) {
    const int64_t begun = block.piece * parts.piece;
    lookups = std::min(parts.piece, between(block.part, block.part + 1) - begun);
    written = 1;
  } else if (parts.samples > 0) {
    const int64_t begin = block.part * parts.samples;
    const int64_t end = std::min(begin + parts.samples, bags.samples);
    lookups = between(begin, end);
    written = end - begin;
  } else {
    lookups = written = std::min(parts.lookups, bags.lookups() - block.part * parts.lookups);
  }
  constexpr int64_t kId = 2;  // floats
  return lookups * (kId + dim) + written * dim;
}

/// Puts blocks in the order of their weights, the heaviest first: SMs take them in
/// turn, and whoever is last to end then has little left. Those of nearly the same weight, by less
/// than a quarter, stay as they are: neighbours look up the same rows.
template <class WeightOf>
void put_heaviest_first(const WeightOf& weight_of_block, std::vector<gpu::PoolBlock>& blocks) {
  constexpr size_t kClasses = 256;
  const auto class_of = [](int64_t weight) {
    const auto bits = static_cast<uint64_t>(weight);
    const int below = std::max(0, static_cast<int>(std::bit_width(bits)) - 3);
    return kClasses - 1 - (static_cast<size_t>(below) * 4 + (bits >> below));
  };
  std::vector<uint8_t> classes(blocks.size());
  std::array<size_t, kClasses + 1> begins = {};
  for (size_t b = 0; b < blocks.size(); ++b) {
    classes[b] = static_cast<uint8_t>(class_of(weight_of_block(blocks[b])));
    ++begins[classes[b] + 1u];
  }
  for (size_t c = 0; c < kClasses; ++c) begins[c + 1] += begins[c];
  std::vector<gpu::PoolBlock> ordered(blocks.size());
  for (size_t b = 0; b < blocks.size(); ++b) ordered[begins[classes[b]]++] = blocks[b];
  blocks = std::move(ordered);
}

}  // namespace recmill::kernels
