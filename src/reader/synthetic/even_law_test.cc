// SPDX-License-Identifier: Apache-2.0
// Laws without tables, and the cells of columns that use them.
#include "reader/synthetic/even_law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "base/random.h"
#include "reader/synthetic/synthetic_columns.h"

namespace recmill::reader {
namespace {

constexpr uint64_t kSeed = 20240611;

/// Pearson's statistic of `draws` samples against the law's probabilities.
template <typename Law>
double chi_square(const Law& law, int64_t draws) {
  const Random random(kSeed, Purpose::test);
  std::vector<int64_t> counts(static_cast<size_t>(law.ranks));
  for (int64_t i = 0; i < draws; ++i) ++counts[law.sample(random.bits(i))];
  double statistic = 0, total = 0;
  for (int64_t rank = 0; rank < law.ranks; ++rank) {
    const double expected = law.probability(rank) * static_cast<double>(draws);
    statistic += (counts[rank] - expected) * (counts[rank] - expected) / expected;
    total += law.probability(rank);
  }
  EXPECT_NEAR(total, 1.0, 1e-12);
  return statistic;
}

SyntheticIdColumn bag(LengthLaw lengths, double mean, double deviation, int64_t longest) {
  SyntheticIdColumn column{.name = "bag", .cardinality = 500, .law = IdLaw::power};
  column.lengths = lengths;
  column.mean_length = mean;
  column.deviation = deviation;
  column.max_length = longest;
  column.direct = true;
  return column;
}

IdSource source_of(const SyntheticIdColumn& column, uint64_t stream = 1) {
  SharedTables tables;
  auto source = IdSource::make(
      column, {kSeed, stream, column.line > 0 ? 1000 + static_cast<uint64_t>(column.line) : stream},
      32, tables);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return *std::move(source);
}

}  // namespace

TEST(EvenLaw, draws_each_rank_as_often_as_it_says) {
  // 999 degrees of freedom: five standard deviations are 1,223.
  EXPECT_LT(chi_square(UniformLaw{1000}, 400000), 1223) << "seed " << kSeed;
  EXPECT_LT(chi_square(PowerLaw{1000}, 400000), 1223) << "seed " << kSeed;
  EXPECT_EQ(UniformLaw{1}.sample(~0u), 0);
  EXPECT_EQ(PowerLaw{1}.sample(0), 0);
  EXPECT_EQ(UniformLaw{int64_t{1} << 31}.sample(~0u), (int64_t{1} << 31) - 1);
  EXPECT_EQ(PowerLaw{7}.sample(0), 6);
  EXPECT_EQ(PowerLaw{7}.sample(~0u), 0);
}

TEST(EvenLaw, power_is_as_even_as_weights_of_a_cube_root) {
  const PowerLaw law{4096};
  EXPECT_NEAR(law.probability(0) * 4096, 4.0 / 3.0, 1e-3);
  double top = 0;
  for (int64_t rank = 0; rank < 410; ++rank) top += law.probability(rank);
  EXPECT_NEAR(top, 0.13, 0.003);  // of a tenth of the ids
  for (int64_t rank = 1; rank < 4096; ++rank) {
    ASSERT_LT(law.probability(rank), law.probability(rank - 1));
  }
}

TEST(Scatter, is_a_bijection_that_parts_neighbours) {
  for (const int64_t count : {1, 2, 3, 4, 5, 12, 1000, 1024, 4096, 16384, 65536, 100003}) {
    const Scatter scatter(count, kSeed);
    std::set<uint64_t> seen;
    for (int64_t p = 0; p < count; ++p) {
      ASSERT_LT(scatter(p), static_cast<uint64_t>(count));
      seen.insert(scatter(p));
      if (p == 0 || count < 1000) continue;
      const auto apart = static_cast<int64_t>(scatter(p)) - static_cast<int64_t>(scatter(p - 1));
      ASSERT_GT(std::abs(apart), count / 4) << count;
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), count);
  }
  const int64_t most = int64_t{1} << 31;
  EXPECT_LT(Scatter(most, kSeed)(most - 1), static_cast<uint64_t>(most));
}

TEST(IdSource, cell_is_the_positions_one_by_one) {
  for (const IdLaw law : {IdLaw::zipf, IdLaw::uniform, IdLaw::power}) {
    for (const bool direct : {false, true}) {
      SyntheticIdColumn column = bag(LengthLaw::fixed, 1, 0, 13);
      column.law = law;
      column.direct = direct;
      const IdSource source = source_of(column);
      for (const int64_t row : {int64_t{0}, int64_t{1}, int64_t{1} << 33}) {
        for (size_t length = 0; length <= 13; ++length) {
          std::vector<uint64_t> ids(length);
          source.cell(row, ids);
          for (size_t i = 0; i < length; ++i) {
            const int64_t position = source.position(row, static_cast<int64_t>(i));
            ASSERT_EQ(ids[i], source.raw_id(position));
            ASSERT_TRUE(!direct || ids[i] < 500u);
          }
        }
      }
    }
  }
}

TEST(IdSource, lengths_follow_a_normal_law_that_is_cut_off_and_rounded_down) {
  // Means by the formula of the truncated normal law, less the half that rounding down takes.
  const struct {
    double mean, deviation;
    int64_t longest;
    double expected;
  } cases[] = {
      {10, 10, 50, 12.37}, {50, 10, 100, 49.5}, {100, 100, 500, 128.2}, {50, 50, 450, 63.9}};
  for (const auto& [mean, deviation, longest, expected] : cases) {
    const IdSource source = source_of(bag(LengthLaw::normal, mean, deviation, longest));
    EXPECT_NEAR(source.mean_length(), expected, 0.005 * expected);
    double sum = 0;
    int64_t most = 0;
    constexpr int64_t kRows = 40000;
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t length = source.length(row);
      sum += static_cast<double>(length);
      most = std::max(most, length);
    }
    EXPECT_LT(most, longest);
    EXPECT_NEAR(sum / kRows, source.mean_length(), 5 * deviation / std::sqrt(double{kRows}))
        << "seed " << kSeed;
  }
}

TEST(IdSource, columns_of_a_line_have_cells_of_one_length_and_ids_of_their_own) {
  SyntheticIdColumn column = bag(LengthLaw::normal, 10, 5, 30);
  column.empty_share = 0.4;
  column.line = 2;
  const IdSource a = source_of(column, 1), b = source_of(column, 2);
  column.line = 3;
  const IdSource other = source_of(column, 3);
  int64_t empty = 0, same_id = 0, same_length = 0, ids = 0;
  for (int64_t row = 0; row < 10000; ++row) {
    ASSERT_EQ(a.length(row), b.length(row));
    empty += a.length(row) == 0;
    same_length += a.length(row) == other.length(row);
    if (a.length(row) == 0) continue;
    ++ids;
    same_id += a.position(row, 0) == b.position(row, 0);
  }
  EXPECT_NEAR(empty / 10000.0, 0.4 + 0.6 * 0.02, 0.02);  // of the others some 2 % have length 0
  EXPECT_LT(same_length, 3000);                          // both are missing in 0.16 of the rows
  EXPECT_LT(same_id, ids / 100);
}

}  // namespace recmill::reader
