// SPDX-License-Identifier: Apache-2.0
#include "stats/merge_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/testing/faulty_files.h"
#include "stats/access_counts_file.h"
#include "stats/testing/drawn_lookups.h"

namespace recmill::stats {
namespace {

using testing::HasSubstr;

constexpr int64_t kParts = 3, kSamples = 20'000;

/// Counts of different samples, each cut to so many bytes.
std::vector<AccessCounts> cut_parts(std::vector<int64_t> bytes) {
  ThreadPool pool(2);
  std::vector<AccessCounts> parts;
  for (int64_t p = 0; p < kParts; ++p)
    parts.push_back(counted(p * kSamples, kSamples, 5000, 2).finish(pool, bytes[p]));
  return parts;
}

int64_t sum(const std::vector<int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
}

/// Whether `merged` says nothing of any row that is not so.
void expect_bounds(const AccessCounts& merged, const PlainCounts& plain) {
  EXPECT_EQ(merged.samples, kParts * kSamples);
  for (size_t t = 0; t < plain.size(); ++t) {
    const TableCounts& table = merged.tables[t];
    std::map<int64_t, int64_t> left = plain[t];
    int64_t lookups = 0;
    for (const auto& [row, count] : plain[t]) lookups += count;
    EXPECT_EQ(table.lookups, lookups);
    EXPECT_EQ(sum(table.hot_counts) + sum(table.range_lookups), lookups);
    EXPECT_EQ(sum(table.tail_rows_by_count) + std::ssize(table.hot_rows), table.rows);
    for (size_t i = 0; i < table.hot_rows.size(); ++i) {
      const int64_t exact = left.at(table.hot_rows[i]);
      EXPECT_LE(table.hot_counts[i], exact);
      EXPECT_GE(table.hot_counts[i] + table.undercount, exact);
      left.erase(table.hot_rows[i]);
    }
    for (const auto& [row, count] : left) EXPECT_LT(count, std::ssize(table.tail_rows_by_count));
  }
}

PlainCounts plain_counts() {
  PlainCounts plain;
  count_plainly(draw(0, kParts * kSamples), plain);
  return plain;
}

TEST(MergeCounts, OfUncutCountsIsCountingTogether) {
  ThreadPool pool(2);
  const AccessCounts together = counted(0, kParts * kSamples, 9000, 2).finish(pool);
  EXPECT_EQ(*merge_counts(cut_parts({0, 0, 0})), together);
}

TEST(MergeCounts, OfCutCountsKeepsTotalsAndBounds) {
  const PlainCounts plain = plain_counts();
  for (const std::vector<int64_t>& bytes :
       {std::vector<int64_t>{9000, 9000, 9000}, {9000, 4000, 0}, {3000, 6000, 1}}) {
    const AccessCounts merged = *merge_counts(cut_parts(bytes));
    expect_bounds(merged, plain);
    EXPECT_GT(merged.tables[2].undercount, 0);
  }
}

TEST(MergeCounts, OfMergedCountsKeepsThemToo) {
  std::vector<AccessCounts> parts = cut_parts({9000, 4000, 6000});
  const AccessCounts two = *merge_counts(std::span(parts).first(2), 5000);
  const AccessCounts three[] = {two, parts[2]};
  expect_bounds(*merge_counts(three), plain_counts());
  std::ranges::reverse(parts);
  expect_bounds(*merge_counts(parts), plain_counts());
}

TEST(MergeCounts, InAnyOrderIsTheSame) {
  std::vector<AccessCounts> parts = cut_parts({9000, 4000, 6000});
  const AccessCounts merged = *merge_counts(parts);
  std::ranges::reverse(parts);
  EXPECT_EQ(*merge_counts(parts), merged);
}

TEST(MergeCounts, FitsIntoItsFile) {
  const PlainCounts plain = plain_counts();
  ThreadPool pool(2);
  FaultyFiles files;
  for (const int64_t bytes : {12'000, 8000, 5000}) {
    const AccessCounts merged = *merge_counts(cut_parts({0, 9000, 6000}), bytes);
    expect_bounds(merged, plain);
    ASSERT_TRUE(write_counts(merged, "m.counts", files, pool).ok());
    EXPECT_LE(std::ssize(files.content("m.counts")), bytes);
    EXPECT_EQ(*read_counts("m.counts", "digest", files, pool), merged);
  }
}

TEST(MergeCounts, RefusesOtherModels) {
  std::vector<AccessCounts> parts = cut_parts({0, 0, 0});
  parts[1].model = "another";
  const Status status = merge_counts(parts).status();
  EXPECT_EQ(status.code(), Status::Code::bad_request);
  EXPECT_THAT(status.message(), HasSubstr("their digests are digest and another"));
  EXPECT_EQ(merge_counts({}).status().code(), Status::Code::bad_request);
}

}  // namespace
}  // namespace recmill::stats
