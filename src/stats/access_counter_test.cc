// SPDX-License-Identifier: Apache-2.0
#include "stats/access_counter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/testing/faulty_files.h"
#include "stats/access_counts_file.h"
#include "stats/hot_threshold.h"
#include "stats/testing/drawn_lookups.h"

namespace recmill::stats {
namespace {

/// What follows of AccessCounts from plain counts and a threshold.
void expect_cut(const AccessCounts& counts, const PlainCounts& plain, int64_t threshold) {
  for (size_t t = 0; t < plain.size(); ++t) {
    const TableCounts& table = counts.tables[t];
    std::vector<int64_t> hot_rows, hot_counts, ranges(table.range_lookups.size()), tail;
    int64_t lookups = 0;
    tail.resize(static_cast<size_t>(threshold));
    tail[0] = table.rows - std::ssize(plain[t]);
    for (const auto& [row, count] : plain[t]) {
      lookups += count;
      if (count >= threshold) {
        hot_rows.push_back(row);
        hot_counts.push_back(count);
      } else {
        ranges.at(static_cast<size_t>(row / table.range_rows)) += count;
        ++tail[static_cast<size_t>(count)];
      }
    }
    while (!tail.empty() && tail.back() == 0) tail.pop_back();
    EXPECT_EQ(table.hot_rows, hot_rows);
    EXPECT_EQ(table.hot_counts, hot_counts);
    EXPECT_EQ(table.range_lookups, ranges);
    EXPECT_EQ(table.tail_rows_by_count, tail);
    EXPECT_EQ(table.lookups, lookups);
    EXPECT_EQ(table.undercount, 0);
  }
}

int64_t least_hot(const AccessCounts& counts) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const TableCounts& table : counts.tables) {
    for (const int64_t count : table.hot_counts) least = std::min(least, count);
  }
  return least;
}

constexpr int64_t kSamples = 60'000;

TEST(AccessCounter, CountsWhatAMapCounts) {
  PlainCounts plain;
  count_plainly(draw(0, kSamples), plain);
  ThreadPool pool(2);
  const AccessCounts counts = counted(0, kSamples, 7001, 2).finish(pool);
  expect_cut(counts, plain, 1);
  EXPECT_EQ(counts.model, "digest");
  EXPECT_EQ(counts.samples, kSamples);
  EXPECT_EQ(counts.tables[0].bags, kSamples + kSamples / 4 * 3);
  EXPECT_EQ(counts.tables[1].bags, kSamples);
  // Counters wrapped, some of them often.
  EXPECT_GT(*std::ranges::max_element(counts.tables[1].hot_counts), 256 * 10);
}

TEST(AccessCounter, BatchesAndThreadsChangeNothing) {
  ThreadPool pool(2);
  const AccessCounts expected = counted(0, kSamples, kSamples, 1).finish(pool);
  for (const auto& [batch, threads] : {std::pair{100, 1}, {30'000, 4}, {60'000, 3}}) {
    EXPECT_EQ(counted(0, kSamples, batch, threads).finish(pool), expected);
  }
}

TEST(AccessCounter, MergingIsCountingTogether) {
  ThreadPool pool(2);
  AccessCounter counter = counted(0, 1000, 1000, 1);
  counter.merge(counted(1000, 40'000, 1000, 2), pool);
  counter.merge(new_counter(), pool);
  counter.merge(counted(41'000, kSamples - 41'000, 5000, 1), pool);
  EXPECT_EQ(counter.finish(pool), counted(0, kSamples, 9000, 1).finish(pool));
}

TEST(AccessCounter, CutsTheCoolestRowsOfAllTablesSoThatTheFileFits) {
  PlainCounts plain;
  count_plainly(draw(0, kSamples), plain);
  ThreadPool pool(2);
  const AccessCounter counter = counted(0, kSamples, 7001, 2);
  int64_t before = 1;
  for (const int64_t bytes : {30'000, 8'000, 4'000, 3'500}) {
    SCOPED_TRACE(bytes);
    const AccessCounts counts = counter.finish(pool, bytes);
    FaultyFiles files;
    ASSERT_TRUE(write_counts(counts, "x.counts", files, pool).ok());
    EXPECT_LE(std::ssize(files.content("x.counts")), bytes);
    const int64_t threshold = least_hot(counts);
    ASSERT_GT(threshold, before);
    ASSERT_LT(threshold, kAlwaysHot);
    expect_cut(counts, plain, before = threshold);
  }
}

TEST(AccessCounter, CutsRowsWhoseCountersHaveWrapped) {
  SparseBatch batch;
  batch.samples = 1;
  batch.features.resize(small_model().features.size());
  for (SparseFeature& feature : batch.features) feature.offsets = {0, 0};
  std::vector<int64_t>& rows = batch.features[3].rows;
  for (int64_t row = 0; row < 10'000; ++row) rows.insert(rows.end(), row % 600, row * 20);
  batch.features[3].offsets[1] = std::ssize(rows);
  PlainCounts plain;
  count_plainly(batch, plain);
  ThreadPool pool(2);
  AccessCounter counter = new_counter();
  counter.add(batch, pool);
  const AccessCounts counts = counter.finish(pool, 10'000);
  EXPECT_GT(least_hot(counts), 256);
  EXPECT_LT(least_hot(counts), 600);
  EXPECT_EQ(counts.tables[2].bags, 1);
  expect_cut(counts, plain, least_hot(counts));
}

TEST(AccessCounter, FilesOfLargeModelsHaveTheirSize) {
  EXPECT_NEAR(static_cast<double>(default_file_bytes(242'500'000)), 64e6, 1);
  EXPECT_NEAR(static_cast<double>(default_file_bytes(2'500'000'000)), 256e6, 1);
}

}  // namespace
}  // namespace recmill::stats
