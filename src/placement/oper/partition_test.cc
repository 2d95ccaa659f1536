// SPDX-License-Identifier: Apache-2.0
#include "placement/oper/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "placement/testing/random_problem.h"

namespace recmill::placement {
namespace {

using testing::zipf_problem;

constexpr std::array<int64_t, 4> kRows{20'000, 3000, 17, 1};

TEST(HotOrder, is_descending_in_lookups_with_ties_by_row) {
  AccessCounts counts;
  counts.tables.emplace_back();
  counts.tables[0].hot_rows = {1, 2, 3, 4, 5};
  counts.tables[0].hot_counts = {3, 70'000, 3, 90'000, 65'536};
  EXPECT_EQ(hot_orders(counts)[0], (HotOrder{3, 1, 4, 0, 2}));
}

TEST(Partitioning, keeps_each_row_in_one_partition_and_below_the_thresholds) {
  const Problem problem = zipf_problem(kRows, 8, 1.1, 4, 200'000, 3);
  const auto orders = hot_orders(problem.counts);
  for (const double threshold : {0.1, 0.01, 0.001}) {
    const Thresholds thresholds{threshold, threshold};
    const Partitioning partitioning(problem, orders, thresholds);
    std::vector<std::vector<int>> listed(kRows.size());
    for (size_t t = 0; t < kRows.size(); ++t)
      listed[t].resize(problem.counts.tables[t].hot_rows.size());
    std::vector<int64_t> covered(kRows.size());
    Load all, listed_load;
    for (const Partition& partition : partitioning.partitions()) {
      all += partition.load;
      if (partition.access_bounded()) listed_load += partition.load;
      for (const int64_t i : partition.listed) ++listed[partition.table][i];
      if (!partition.access_bounded()) {
        EXPECT_EQ(partition.begin, covered[partition.table]);
        covered[partition.table] = partition.end;
      }
      const int64_t rows =
          partition.access_bounded() ? partition.listed.size() : partition.end - partition.begin;
      if (rows == 1) continue;
      EXPECT_LE(partition.load.fetched, threshold * partitioning.all().fetched * (1 + 1e-9));
      EXPECT_LE(partition.load.memory, threshold * partitioning.all().memory * (1 + 1e-9));
    }
    for (size_t t = 0; t < kRows.size(); ++t) {
      EXPECT_EQ(covered[t], kRows[t]);
      EXPECT_LE(std::ranges::max(listed[t]), 1);
    }
    EXPECT_NEAR(all.memory, static_cast<double>(problem.total_bytes()), 1);
    EXPECT_NEAR(all.fetched, partitioning.all().fetched, 1e-6 * all.fetched);
    EXPECT_NEAR(listed_load.fetched / all.fetched, partitioning.access_bounded_share(), 1e-9);
  }
}

TEST(Partitioning, lists_the_hottest_rows) {
  const Problem problem = zipf_problem(kRows, 8, 1.1, 4, 200'000, 3);
  const auto orders = hot_orders(problem.counts);
  const Partitioning partitioning(problem, orders, {0.01, 0.01});
  const TableCounts& counts = problem.counts.tables[0];
  std::vector<bool> listed(counts.hot_rows.size());
  for (const Partition& partition : partitioning.partitions())
    if (partition.table == 0)
      for (const int64_t i : partition.listed) listed[i] = true;
  int64_t least_listed = std::numeric_limits<int64_t>::max(), most_left = 0;
  for (size_t i = 0; i < listed.size(); ++i) {
    int64_t& bound = listed[i] ? least_listed : most_left;
    bound =
        listed[i] ? std::min(bound, counts.hot_counts[i]) : std::max(bound, counts.hot_counts[i]);
  }
  EXPECT_GE(least_listed, most_left);
  EXPECT_GT(most_left, 0);
}

TEST(Partitioning, rows_that_follow_each_other_go_to_as_many_partitions_as_there_are_devices) {
  const Problem problem = zipf_problem(kRows, 8, 1.1, 4, 200'000, 3);
  const Partitioning partitioning(problem, hot_orders(problem.counts), {0.01, 0.01});
  // The last group of the largest table: four partitions of as many accesses and rows.
  std::vector<const Partition*> of;
  for (const Partition& partition : partitioning.partitions())
    if (partition.table == 0 && partition.access_bounded()) of.push_back(&partition);
  ASSERT_GE(of.size(), 4u);
  const Partition& last = *of.back();
  for (size_t k = of.size() - 4; k < of.size(); ++k) {
    EXPECT_NEAR(of[k]->load.fetched, last.load.fetched, 0.05 * last.load.fetched);
    EXPECT_NEAR(of[k]->load.memory, last.load.memory, 0.05 * last.load.memory);
  }
}

TEST(Partitioning, leaves_out_what_is_taken) {
  const Problem problem = zipf_problem(kRows, 8, 1.1, 4, 200'000, 3);
  auto orders = hot_orders(problem.counts);
  std::vector<std::vector<bool>> taken;
  for (const TableCounts& counts : problem.counts.tables)
    taken.emplace_back(counts.hot_rows.size());
  Load gone;
  for (int i = 0; i < 100; ++i) {
    const int64_t hot = orders[0][i];
    taken[0][hot] = true;
    const RowUses uses(problem.counts.tables[0], problem.counts.samples, problem.samples, 4);
    gone +=
        load_of(problem, problem.tables[0], 1, uses.of(problem.counts.tables[0].hot_counts[hot]));
  }
  const Partitioning all(problem, orders, {0.01, 0.01});
  const double fetched = all.all().fetched;
  std::erase_if(orders[0], [&](int64_t i) { return taken[0][i]; });
  const Partitioning rest(problem, orders, {0.01, 0.01}, taken);
  EXPECT_NEAR(rest.all().fetched, fetched - gone.fetched, 1e-6 * fetched);
  EXPECT_NEAR(rest.all().memory, static_cast<double>(problem.total_bytes()) - gone.memory, 1e-3);
  Load sum;
  for (const Partition& partition : rest.partitions()) sum += partition.load;
  EXPECT_NEAR(sum.memory, rest.all().memory, 1);
  EXPECT_NEAR(sum.fetched, rest.all().fetched, 1e-6 * sum.fetched);
}

}  // namespace
}  // namespace recmill::placement
