// SPDX-License-Identifier: Apache-2.0
#include "store/tables/merge_distinct_rows.h"

#include <gtest/gtest.h>

namespace recmill::store {
namespace {

TEST(MergeDistinctRows, orders_sources_by_slice_and_then_by_batch) {
  DistinctRows first, second;
  first.rows = {5, 2};
  first.begins = {0, 3, 4};
  first.sources = {{0, 0, 0}, {1, 1, 0}, {9, 0, 3}, {1, 0, 0}};
  second.rows = {7, 5};
  second.begins = {0, 1, 3};
  second.sources = {{0, 1, 1}, {4, 0, 0}, {5, 1, 2}};
  second.weights = {2.0f, 3.0f, 4.0f};
  const DistinctRows* const batches[] = {&first, &second};
  const DistinctRows merged = merge_distinct_rows(batches, 2);
  EXPECT_EQ(merged.rows, (std::vector<int64_t>{2, 5, 7}));
  EXPECT_EQ(merged.begins, (std::vector<int64_t>{0, 1, 6, 7}));
  EXPECT_EQ(merged.sources,
            (std::vector<LookupSource>{
                {1, 0, 0}, {0, 0, 0}, {1, 1, 0}, {4, 2, 0}, {5, 3, 2}, {9, 0, 3}, {0, 3, 1}}));
  EXPECT_EQ(merged.weights, (std::vector<float>{1, 1, 1, 3, 4, 1, 2}));
  EXPECT_TRUE(merged.counts.empty());
}

}  // namespace
}  // namespace recmill::store
