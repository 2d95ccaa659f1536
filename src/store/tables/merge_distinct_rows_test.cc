// SPDX-License-Identifier: Apache-2.0
#include "store/tables/merge_distinct_rows.h"

#include <gtest/gtest.h>

namespace recmill::store {
namespace {

DistinctRows of_one_lookup(int64_t row) {
  DistinctRows distinct;
  distinct.rows = {row};
  distinct.begins = {0, 1};
  distinct.sources = {{0, 0, 0}};
  return distinct;
}

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

TEST(MergeTables, hands_out_a_single_batchs_own_rows_and_merges_those_of_several) {
  std::vector<DistinctRows> first(2), second(2), merged;
  first[1] = of_one_lookup(4);
  second[1] = of_one_lookup(3);
  const std::vector<std::vector<size_t>> features_of = {{0}, {1, 2}};
  const std::span<const DistinctRows> batches[] = {first, second};
  const auto one = merge_tables({batches, 1}, features_of, merged);
  EXPECT_EQ(one, (std::vector<const DistinctRows*>{&first[0], &first[1]}));
  const auto both = merge_tables(batches, features_of, merged);
  EXPECT_EQ(both, (std::vector<const DistinctRows*>{&merged[0], &merged[1]}));
  EXPECT_TRUE(both[0]->rows.empty());
  EXPECT_EQ(both[1]->rows, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(both[1]->sources, (std::vector<LookupSource>{{0, 2, 0}, {0, 0, 0}}));
}

}  // namespace
}  // namespace recmill::store
