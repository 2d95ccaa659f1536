// SPDX-License-Identifier: Apache-2.0
#include "stats/count_shares.h"

#include <gtest/gtest.h>

namespace recmill::stats {
namespace {

TEST(CountShares, AreOfTheHottestRowsListedOrNot) {
  AccessCounts counts;
  TableCounts& table = counts.tables.emplace_back();
  table.table = "t";
  table.rows = 1000;
  table.hot_rows = {5, 7, 600};
  table.hot_counts = {500, 300'000, 20};
  table.tail_rows_by_count = {900, 50, 0, 47};
  table.lookups = 500 + 300'000 + 20 + 50 + 3 * 47;
  const auto lookups = static_cast<double>(table.lookups);
  const TableShares shares = shares_of(counts).at(0);
  EXPECT_EQ(shares.touched, 100);
  EXPECT_DOUBLE_EQ(shares.top_0_1_percent, 300'000 / lookups);
  EXPECT_DOUBLE_EQ(shares.top_1_percent, (300'520 + 7 * 3) / lookups);
  EXPECT_DOUBLE_EQ(shares.top_5_percent, (300'520 + 47 * 3) / lookups);
}

TEST(CountShares, OfATableWithoutLookupsAreNone) {
  AccessCounts counts;
  TableCounts& table = counts.tables.emplace_back();
  table.rows = 3;
  table.tail_rows_by_count = {3};
  const TableShares shares = shares_of(counts).at(0);
  EXPECT_EQ(shares.touched, 0);
  EXPECT_EQ(shares.top_5_percent, 0.0);
}

}  // namespace
}  // namespace recmill::stats
