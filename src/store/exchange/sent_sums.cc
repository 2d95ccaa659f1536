// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/sent_sums.h"

namespace recmill::store {

std::vector<SliceRange> sent_ranges(SliceRange own, SentUnit unit) {
  if (unit == SentUnit::subtree_sum) return subtrees(own);
  std::vector<SliceRange> slices;
  for (int slice = own.begin; slice < own.end; ++slice) slices.push_back({slice, slice + 1});
  return slices;
}

void SentSums::plan(const DistinctRows& distinct, std::span<const table::RowPlace> places,
                    const table::EmbeddingTable& table, SliceRange own, SentUnit unit,
                    Recipients recipients) {
  whole_ = &distinct;
  const auto ranges = sent_ranges(own, unit);
  is_split_ = ranges.size() > 1 || unit == SentUnit::lookup;
  if (is_split_) {
    split(distinct, ranges, unit);
  } else {
    range_begins_ = {0, distinct.count()};
    split_from_.clear();
  }
  by_rank_.to_recipients({distinct.rows, places, split_from_}, table, recipients);
}

void SentSums::split(const DistinctRows& distinct, std::span<const SliceRange> ranges,
                     SentUnit unit) {
  split_.rows.clear();
  split_.begins.assign(1, 0);
  split_.sources.clear();
  split_.weights.clear();
  split_.counts.clear();
  split_from_.clear();
  range_begins_.assign(1, 0);
  const auto end_entry = [&](int64_t i) {
    split_.rows.push_back(distinct.rows[i]);
    split_from_.push_back(i);
    split_.begins.push_back(split_.lookups());
  };
  std::vector<int64_t> next(distinct.begins.begin(), distinct.begins.end());  // of each row
  for (const SliceRange& range : ranges) {
    for (int64_t i = 0; i < distinct.count(); ++i) {
      int64_t& at = next[i];
      const int64_t first = at, end = distinct.begins[i + 1];
      for (; at < end && distinct.sources[at].slice < range.end; ++at) {
        split_.sources.push_back(distinct.sources[at]);
        if (!distinct.weights.empty()) split_.weights.push_back(distinct.weights[at]);
        if (!distinct.counts.empty()) split_.counts.push_back(distinct.counts[at]);
        if (unit == SentUnit::lookup) end_entry(i);
      }
      if (unit == SentUnit::subtree_sum && at > first) end_entry(i);
    }
    range_begins_.push_back(split_.count());
  }
}

}  // namespace recmill::store
