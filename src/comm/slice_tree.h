// SPDX-License-Identifier: Apache-2.0
// The balanced binary tree over the slices of a global batch: how slices' sums become the total,
// whatever the number of ranks (docs/ARCHITECTURE.md, "One order of summation").
//
//   sum(slices [a, a + 1)) = the slice's own fold from +0
//   sum(slices [a, b))     = sum([a, (a + b) / 2)) + sum([(a + b) / 2, b))
//
// A sum that folds from +0 is never -0, so that a part that is absent and a part of zeros give the
// same bits. (x + 0 is x for every other x, infinities included; a NaN stays one.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/thread_pool.h"

namespace recmill {

/// Slices [begin, end). A subtree when its size is a power of two and `begin` a multiple of it.
struct SliceRange {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
  bool operator==(const SliceRange&) const = default;
};

bool is_subtree(SliceRange range);

/// Rank r of W owns slices [r S / W, (r + 1) S / W).
SliceRange slices_of_rank(int rank, int ranks, int slices);

/// The largest subtrees that make up `range`, from left to right: what a rank sends. At most
/// 2 log2(S).
std::vector<SliceRange> subtrees(SliceRange range);

/// The sums over the slices of one subtree, one for each element.
template <typename T>
struct SlicePart {
  SliceRange slices;        // a subtree
  const T* data = nullptr;  // [elements]
};

/// out[i] = the tree's sum over `whole`, a subtree, of parts[.].data[i], for i in [0, elements).
/// Parts are disjoint, ascending and inside `whole`; slices that no part covers count as zeros.
/// `out` may be the data of the first part, and overlaps no other. Allocates nothing, works on the
/// pool by tiles, and gives the same bits at any number of threads.
template <typename T>
void tree_sum(SliceRange whole, std::span<const SlicePart<T>> parts, std::span<T> out,
              ThreadPool& pool);

/// The same on the calling thread, of parts[.].data[first + i]: for a row, a loss, or a piece.
template <typename T>
void tree_sum(SliceRange whole, std::span<const SlicePart<T>> parts, std::span<T> out,
              int64_t first = 0);

extern template void tree_sum(SliceRange, std::span<const SlicePart<float>>, std::span<float>,
                              ThreadPool&);
extern template void tree_sum(SliceRange, std::span<const SlicePart<double>>, std::span<double>,
                              ThreadPool&);
extern template void tree_sum(SliceRange, std::span<const SlicePart<float>>, std::span<float>,
                              int64_t);
extern template void tree_sum(SliceRange, std::span<const SlicePart<double>>, std::span<double>,
                              int64_t);

}  // namespace recmill
