// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batch/distinct_rows.h"
#include "comm/slice_tree.h"
#include "kernels/row_update/gradient_sums.h"
#include "store/exchange/rows_by_rank.h"
#include "table/embedding_table.h"

namespace recmill::store {

/// In which pieces a rank sends gradients.
enum class SentUnit {
  subtree_sum,  // a row's sum over each of the rank's largest subtrees of slices: what is needed
  lookup,       // each lookup's own, as systems do that do not de-duplicate
};

/// The slices of `own` by the pieces that are sent of them.
std::vector<SliceRange> sent_ranges(SliceRange own, SentUnit unit);

/// What one rank sends of one table, and to whom: known as soon as the ids are.
class SentSums {
 public:
  /// `distinct` is this rank's, and outlives this; `places`: of its rows, by find_places().
  void plan(const DistinctRows& distinct, std::span<const table::RowPlace> places,
            const table::EmbeddingTable& table, SliceRange own, SentUnit unit,
            Recipients recipients);

  /// Rows of one range after the other, in each of which a row has one entry, or one a lookup.
  const DistinctRows& entries() const { return is_split_ ? split_ : *whole_; }
  /// [ranges + 1], into entries().rows.
  std::span<const int64_t> range_begins() const { return range_begins_; }
  /// The entries' indices, by rank; each rank's in the order of ranges.
  const RowsByRank& by_rank() const { return by_rank_; }

 private:
  void split(const DistinctRows& distinct, std::span<const SliceRange> ranges, SentUnit unit);

  const DistinctRows* whole_ = nullptr;
  bool is_split_ = false;
  DistinctRows split_;
  std::vector<int64_t> split_from_;  // [entries]: which of the distinct rows each is
  std::vector<int64_t> range_begins_;
  RowsByRank by_rank_;
};

}  // namespace recmill::store
