// SPDX-License-Identifier: Apache-2.0
#include "hotset/rand_em_box.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "hotset/student_t.h"

namespace recmill::hotset {
namespace {

constexpr int64_t kRows = 1'000'000;
// Rows of rank r have kRows / (r + 1) lookups, so that cutoff kRows / h leaves h rows hot.
constexpr std::array<int64_t, 4> kHot{1'000, 5'000, 20'000, 70'000};

int64_t lookups_of_rank(int64_t rank) {
  return kRows / (rank + 1);
}

std::vector<int64_t> cutoffs() {
  std::vector<int64_t> result;
  for (int64_t hot : kHot) result.push_back(lookups_of_rank(hot - 1));
  return result;
}

std::vector<int64_t> true_numbers() {
  std::vector<int64_t> hot(kHot.size());
  const std::vector<int64_t> cutoff = cutoffs();
  for (int64_t rank = 0; rank < kRows; ++rank) {
    for (size_t c = 0; c < hot.size(); ++c) hot[c] += lookups_of_rank(rank) >= cutoff[c];
  }
  return hot;
}

}  // namespace

TEST(StudentT, is_that_of_the_tables) {
  EXPECT_NEAR(two_sided_t(0.999, 34), 3.601, 0.0005);
  EXPECT_NEAR(two_sided_t(0.998, 35), 3.340, 0.0005);
  EXPECT_NEAR(two_sided_t(0.99, 1), 63.657, 0.0005);
  EXPECT_NEAR(two_sided_t(0.99, 2), 9.925, 0.0005);
  EXPECT_NEAR(two_sided_t(0.99, 3), 5.841, 0.0005);
  EXPECT_NEAR(two_sided_t(0.99, 49), 2.680, 0.0005);
  EXPECT_NEAR(two_sided_t(0.95, 10), 2.228, 0.0005);
  EXPECT_NEAR(two_sided_t(0.99, 1'000'000'000), 2.576, 0.001);
}

TEST(RandEmBox, holds_the_true_number_of_hot_rows_wherever_they_are) {
  const std::vector<int64_t> truth = true_numbers();
  const std::vector<int64_t> cutoff = cutoffs();
  EXPECT_EQ(truth.front(), 1'000);
  EXPECT_NEAR(static_cast<double>(truth.back()), 70'000, 5'000);
  constexpr int64_t kSeeds = 200;
  // In order of popularity, as a dictionary makes them, and parted.
  const auto neighbours = [](int64_t row) { return lookups_of_rank(row); };
  const auto parted = [](int64_t row) { return lookups_of_rank(row * 618'033 % kRows); };
  for (const std::function<int64_t(int64_t)>& count :
       {std::function<int64_t(int64_t)>(neighbours), std::function<int64_t(int64_t)>(parted)}) {
    std::vector<int64_t> held(cutoff.size());
    std::vector<double> sums(cutoff.size());
    for (int64_t seed = 1; seed <= kSeeds; ++seed) {
      const auto estimates =
          estimate_hot_rows(kRows, count, cutoff, static_cast<uint64_t>(seed), 3);
      for (size_t c = 0; c < cutoff.size(); ++c) {
        const auto number = static_cast<double>(truth[c]);
        held[c] += estimates[c].low <= number && number <= estimates[c].high;
        sums[c] += estimates[c].rows;
        EXPECT_LE(estimates[c].low, estimates[c].rows);
        EXPECT_LE(estimates[c].rows, estimates[c].high);
      }
    }
    for (size_t c = 0; c < cutoff.size(); ++c) {
      EXPECT_GE(held[c], kSeeds * 98 / 100) << "seeds 1 to 200, " << truth[c] << " hot rows";
      // No bias: the mean over seeds is as near as its deviation allows, five of them.
      const auto number = static_cast<double>(truth[c]);
      const double deviation = std::sqrt(number * kRows / (35 * 1024) / kSeeds);
      EXPECT_NEAR(sums[c] / kSeeds, number, 5 * deviation);
    }
  }
}

TEST(RandEmBox, reads_35_chunks_of_1024_different_rows_and_no_more) {
  std::vector<int64_t> reads(100'000);
  const auto count = [&](int64_t row) { return ++reads[static_cast<size_t>(row)]; };
  estimate_hot_rows(std::ssize(reads), count, std::vector<int64_t>{1, 2, 3}, 7, 0);
  EXPECT_EQ(std::accumulate(reads.begin(), reads.end(), int64_t{0}), 35 * 1024);
  EXPECT_EQ(*std::ranges::max_element(reads), 1);
}

TEST(RandEmBox, counts_a_small_table_whole) {
  const std::vector<int64_t> cutoffs{3, 1'000'000};
  for (int64_t rows : {0, 1, 1024, 35 * 1024}) {
    int64_t read = 0;
    const auto count = [&](int64_t row) { return ++read, row % 5; };
    const auto estimates = estimate_hot_rows(rows, count, cutoffs, 1, 0);
    const auto hot = static_cast<double>(rows / 5 * 2 + std::max<int64_t>(rows % 5 - 3, 0));
    EXPECT_EQ(estimates[0], (HotRowsEstimate{hot, hot, hot})) << rows;
    EXPECT_EQ(estimates[1], HotRowsEstimate{});
    EXPECT_EQ(read, rows);
  }
}

TEST(RandEmBox, is_the_exact_number_when_all_rows_are_alike_and_a_function_of_seed_and_table) {
  const auto alike = [](int64_t) { return 4; };
  const std::vector<int64_t> cutoffs{4, 5};
  const auto estimates = estimate_hot_rows(50'000, alike, cutoffs, 1, 0);
  EXPECT_EQ(estimates[0], (HotRowsEstimate{50'000, 50'000, 50'000}));
  EXPECT_EQ(estimates[1], (HotRowsEstimate{0, 0, 0}));
  const auto some = [](int64_t row) { return row % 7; };
  const auto first = estimate_hot_rows(50'000, some, cutoffs, 1, 0);
  EXPECT_EQ(first, estimate_hot_rows(50'000, some, cutoffs, 1, 0));
  EXPECT_NE(first, estimate_hot_rows(50'000, some, cutoffs, 1, 1));
  EXPECT_NE(first, estimate_hot_rows(50'000, some, cutoffs, 2, 0));
}

}  // namespace recmill::hotset
