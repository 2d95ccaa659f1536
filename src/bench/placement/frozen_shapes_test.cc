// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/frozen_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace recmill::bench {
namespace {

TEST(FrozenShapes, HaveTheRowsOfThePaper) {
  const std::map<std::string, std::pair<size_t, int64_t>> expected = {
      {"avazu", {20, 8'930'581}},
      {"kaggle", {26, 30'829'598}},
      {"terabyte", {26, 242'500'000}},
      {"syn_small", {26, 838'900'000}},
      {"syn_large", {26, 2'500'000'000}}};
  ASSERT_EQ(frozen_shapes().size(), expected.size());
  for (const FrozenShape& shape : frozen_shapes()) {
    SCOPED_TRACE(shape.name);
    EXPECT_EQ(shape.rows.size(), expected.at(shape.name).first);
    EXPECT_EQ(shape.total_rows(), expected.at(shape.name).second);
  }
  EXPECT_THAT(frozen_shape("criteo").status().message(), testing::HasSubstr("avazu, kaggle"));
}

TEST(FrozenShapes, APermutationMeetsEachRowOnce) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 63, 64, 65, 1000, 4099}) {
    const RowPermutation permutation(rows, 77);
    std::vector<int64_t> met(static_cast<size_t>(rows));
    for (int64_t rank = 0; rank < rows; ++rank) ++met.at(permutation.row(rank));
    EXPECT_THAT(met, testing::Each(1)) << rows;
  }
}

TEST(FrozenShapes, HotRowsAreScatteredOverATable) {
  constexpr int64_t kRows = 1'000'000, kHot = 10'000, kParts = 10;
  const RowPermutation permutation(kRows, 5);
  std::vector<int64_t> of_part(kParts);
  for (int64_t rank = 0; rank < kHot; ++rank) ++of_part[permutation.row(rank) * kParts / kRows];
  // Binomial: 1000 with a standard deviation of 30.
  EXPECT_THAT(of_part, testing::Each(testing::AllOf(testing::Gt(850), testing::Lt(1150))));
}

TEST(FrozenShapes, DrawsDependOnTheSeedAndNotOnThreads) {
  const FrozenShape shape = *frozen_shape("avazu");
  ThreadPool one(1), three(3);
  constexpr int64_t kLookups = 1'000'000;
  const AccessCounts counts = *draw_counts(shape, 1.2, 1, kLookups, one);
  EXPECT_EQ(counts, *draw_counts(shape, 1.2, 1, kLookups, three));
  EXPECT_NE(counts, *draw_counts(shape, 1.2, 2, kLookups, one));
  EXPECT_EQ(counts.samples, kLookups / 20);
  for (const TableCounts& table : counts.tables) EXPECT_EQ(table.lookups, counts.samples);
}

TEST(FrozenShapes, TwoDrawsAreOfOneLaw) {
  const FrozenShape shape = *frozen_shape("avazu");
  ThreadPool pool(2);
  for (const uint64_t seed : {1, 2}) {
    const AccessCounts counts = *draw_counts(shape, 1.2, seed, 4'000'000, pool);
    const size_t largest = 8;
    const TableLaw law(shape, largest, 1.2);
    const TableCounts& table = counts.tables[largest];
    for (int64_t rank = 0; rank < 20; ++rank) {
      const auto at = std::ranges::lower_bound(table.hot_rows, law.permutation().row(rank));
      ASSERT_NE(at, table.hot_rows.end());
      ASSERT_EQ(*at, law.permutation().row(rank));
      const double mean = law.law().probability(rank) * static_cast<double>(table.lookups);
      EXPECT_NEAR(static_cast<double>(table.hot_counts[at - table.hot_rows.begin()]), mean,
                  6 * std::sqrt(mean));
    }
  }
}

}  // namespace
}  // namespace recmill::bench
