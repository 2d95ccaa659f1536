// SPDX-License-Identifier: Apache-2.0
// The gradient of each distinct row, in the one order of summation.
//
// The gradient g of one lookup is the gradient row of its bag (unpooled: its own row), for a mean
// divided element by element by the lookups of the bag, then, where the feature has weights,
// multiplied by the lookup's weight.
//
//   part[s] = fold from +0 of g over the row's lookups in slice s,
//             in order (feature, sample, position)
//   sum = the tree of comm/slice_tree.h over parts; an absent part is skipped
#pragma once

#include <cstdint>
#include <span>

#include "batch/distinct_rows.h"
#include "comm/slice_tree.h"

namespace recmill::kernels {

/// Gradient rows of one feature: LookupSource::gradient_row r at data + r * stride.
struct GradientRows {
  const float* data = nullptr;
  int64_t stride = 0;  // floats
};

/// What one table's gradients are summed from.
struct GradientSource {
  const DistinctRows* distinct = nullptr;
  std::span<const GradientRows> gradients;  // [features of the table], as distinct->sources names
  int64_t dim = 0;
  int64_t ahead = 16;  // lookups that gradient rows are fetched ahead
};

/// Which distinct rows: order[0 .. count), or without `order` [begin, begin + count).
struct SumRange {
  const int64_t* order = nullptr;  // indices into DistinctRows::rows
  int64_t begin = 0;
  int64_t count = 0;
};

/// For each row of `range` and each of `subtrees` the sum over that subtree:
/// out [count][subtrees][dim], +0 where the row has no lookup in it. Every lookup of the row must
/// lie in one of `subtrees`, which ascend. Runs on the calling thread; the same bits on any
/// instruction set.
void sum_gradients(const GradientSource& source, const SumRange& range,
                   std::span<const SliceRange> subtrees, float* out);

/// Rows [begin, begin + count), whose lookups all lie in one subtree: row begin + i's sum to
/// outs[i] [dim]; null: the row is left out.
void sum_gradients(const GradientSource& source, int64_t begin, int64_t count, float* const* outs);

/// The plain meaning of the former.
void sum_gradients_reference(const GradientSource& source, const SumRange& range,
                             std::span<const SliceRange> subtrees, float* out);

/// A part of one row's gradient: the sum over the subtree that begins at slice `first`.
struct GradientPart {
  const float* data = nullptr;  // [dim]
  int first = 0;
};

/// Parts of several rows: row i's are parts[begins[i] .. begins[i + 1]), in ascending order of
/// `first`, of subtrees that do not overlap.
struct RowParts {
  std::span<const int64_t> begins;  // [rows + 1]
  std::span<const GradientPart> parts;
};

/// The gradient of rows [begin, begin + count): out [count][dim]; +0 for a row without parts.
void sum_parts(const RowParts& rows, int64_t begin, int64_t count, int64_t dim, float* out);
void sum_parts_reference(const RowParts& rows, int64_t begin, int64_t count, int64_t dim,
                         float* out);

}  // namespace recmill::kernels
