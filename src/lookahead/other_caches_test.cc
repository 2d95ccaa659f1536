// SPDX-License-Identifier: Apache-2.0
#include "lookahead/other_caches.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lookahead/testing/streams.h"

namespace recmill::lookahead {
namespace {

TEST(OtherCaches, fetch_as_many_rows_of_a_skewed_stream_as_were_counted_otherwise) {
  LeastRecentlyUsed cache(500);
  int64_t fetched = 0, not_static = 0;
  std::vector<RowLookups> lookups;
  for (int64_t row = 0; row < testing::kSkewedRows; ++row) lookups.push_back({row, 0});
  for (int64_t i = 0; i < testing::kSkewedSteps * testing::kSkewedBatch; ++i)
    for (uint64_t t = 0; t < 3; ++t) ++lookups[testing::skewed_row(t, i)].lookups;
  const auto kept = most_looked_up(lookups, testing::kSkewedRows / 1000);
  EXPECT_EQ(kept.size(), 5u);
  for (const auto& rows : testing::skewed_stream()) {
    fetched += cache.fetch(rows);
    not_static += std::ranges::count_if(
        rows, [&](int64_t row) { return !std::ranges::binary_search(kept, row); });
  }
  EXPECT_EQ(fetched, 13'629);
  EXPECT_EQ(not_static, 21'071);
}

TEST(OtherCaches, drop_what_is_too_much_at_the_end_of_a_step) {
  LeastRecentlyUsed cache(2);
  EXPECT_EQ(cache.fetch(std::vector<int64_t>{1, 2, 3}), 3);  // 1 leaves
  EXPECT_EQ(cache.fetch(std::vector<int64_t>{2, 3}), 0);
  EXPECT_EQ(cache.fetch(std::vector<int64_t>{1}), 1);  // 2 leaves
  EXPECT_EQ(cache.fetch(std::vector<int64_t>{2, 3}), 1);
}

TEST(OtherCaches, take_the_smaller_of_rows_that_are_looked_up_as_often) {
  EXPECT_EQ(most_looked_up({{7, 2}, {3, 2}, {9, 5}, {1, 1}}, 2), (std::vector<int64_t>{3, 9}));
  EXPECT_EQ(most_looked_up({{7, 2}}, 3), (std::vector<int64_t>{7}));
}

}  // namespace
}  // namespace recmill::lookahead
