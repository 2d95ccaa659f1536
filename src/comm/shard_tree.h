// SPDX-License-Identifier: Apache-2.0
// The balanced binary tree over the shards of a global batch: how shards' sums become the total,
// whatever the number of ranks (docs/ARCHITECTURE.md, "One order of summation").
//
//   sum(shards [a, a + 1)) = the shard's own fold from +0
//   sum(shards [a, b))     = sum([a, (a + b) / 2)) + sum([(a + b) / 2, b))
//
// A sum that folds from +0 is never -0, so that a part that is absent and a part of zeros give the
// same bits. (x + 0 is x for every other x, infinities included; a NaN stays one.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/pool.h"

namespace recmill {

/// Shards [begin, end). A subtree when its size is a power of two and `begin` a multiple of it.
struct ShardRange {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
  bool operator==(const ShardRange&) const = default;
};

bool is_subtree(ShardRange range);

/// Rank r of W owns shards [r S / W, (r + 1) S / W).
ShardRange shards_of_rank(int rank, int ranks, int shards);

/// The largest subtrees that make up `range`, from left to right: what a rank sends. At most
/// 2 log2(S).
std::vector<ShardRange> subtrees(ShardRange range);

/// The sums over the shards of one subtree, one for each element.
template <typename T>
struct ShardPart {
  ShardRange shards;        // a subtree
  const T* data = nullptr;  // [elements]
};

/// out[i] = the tree's sum over `whole`, a subtree, of parts[.].data[i], for i in [0, elements).
/// Parts are disjoint, ascending and inside `whole`; shards that no part covers count as zeros.
/// `out` may be the data of the first part, and overlaps no other. Allocates nothing, works on the
/// pool by tiles, and gives the same bits at any number of threads.
template <typename T>
void tree_sum(ShardRange whole, std::span<const ShardPart<T>> parts, std::span<T> out, Pool& pool);

/// The same on the calling thread, of parts[.].data[first + i]: for a row, a loss, or a piece.
template <typename T>
void tree_sum(ShardRange whole, std::span<const ShardPart<T>> parts, std::span<T> out,
              int64_t first = 0);

extern template void tree_sum(ShardRange, std::span<const ShardPart<float>>, std::span<float>,
                              Pool&);
extern template void tree_sum(ShardRange, std::span<const ShardPart<double>>, std::span<double>,
                              Pool&);
extern template void tree_sum(ShardRange, std::span<const ShardPart<float>>, std::span<float>,
                              int64_t);
extern template void tree_sum(ShardRange, std::span<const ShardPart<double>>, std::span<double>,
                              int64_t);

}  // namespace recmill
