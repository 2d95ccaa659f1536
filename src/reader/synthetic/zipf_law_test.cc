// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/zipf_law.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace recmill::reader {
namespace {

std::vector<double> zipf_reference(int64_t ranks, double exponent) {
  std::vector<double> p(static_cast<size_t>(ranks));
  double total = 0;
  for (int64_t k = 0; k < ranks; ++k) total += p[k] = std::pow(k + 1.0, -exponent);
  for (double& share : p) share /= total;
  return p;
}

}  // namespace

TEST(AliasTable, draws_each_index_by_its_weight) {
  const std::vector<double> weights{3, 0, 1, 10, 0.5};
  const AliasTable table(weights);
  const Random random(5, Purpose::test);
  const int draws = 200000;
  std::vector<int> counts(weights.size());
  for (int i = 0; i < draws; ++i) ++counts[table.sample(random.bits64(i))];
  for (size_t i = 0; i < weights.size(); ++i) {
    const double p = weights[i] / 14.5;
    EXPECT_NEAR(counts[i], draws * p, 5 * std::sqrt(draws * p) + 1e-9) << i;
  }
  EXPECT_EQ(counts[1], 0);
}

TEST(ZipfLaw, is_zipfs_law_to_within_its_buckets) {
  for (int64_t ranks : {1, 2, 255, 256, 257, 258, 1000, 100003}) {
    for (double exponent : {0.0, 0.5, 1.05, 2.0}) {
      const ZipfLaw law(ranks, exponent);
      const std::vector<double> reference = zipf_reference(ranks, exponent);
      double sum = 0;
      for (int64_t k = 0; k < ranks; ++k) {
        ASSERT_NEAR(law.cumulative(k), sum, 1e-9 + 1e-4 * sum) << ranks << " " << k;
        ASSERT_NEAR(law.probability(k), reference[k], (0.0045 * exponent + 1e-4) * reference[k])
            << ranks << " ranks, exponent " << exponent << ", rank " << k;
        sum += law.probability(k);
      }
      EXPECT_NEAR(sum, 1.0, 1e-9);
      EXPECT_NEAR(law.cumulative(ranks), 1.0, 1e-12);
    }
  }
}

TEST(ZipfLaw, draws_by_its_own_probabilities) {
  const int64_t ranks = 5000;
  const ZipfLaw law(ranks, 1.05);
  const Random random(11, Purpose::test);
  const int draws = 1000000;
  std::vector<int> counts(ranks);
  for (int i = 0; i < draws; ++i) {
    const int64_t rank = law.sample(random.bits64(i, 0), random.bits64(i, 1));
    ASSERT_TRUE(rank >= 0 && rank < ranks);
    ++counts[rank];
  }
  // Pearson's statistic over all ranks: mean 4999, deviation 100.
  double chi2 = 0;
  for (int64_t k = 0; k < ranks; ++k) {
    const double expected = draws * law.probability(k);
    chi2 += (counts[k] - expected) * (counts[k] - expected) / expected;
  }
  EXPECT_NEAR(chi2, 4999, 500);
}

TEST(ZipfLaw, has_at_a_quantile_the_rank_that_its_cumulative_shares_name) {
  const Random random(12, Purpose::test);
  for (int64_t ranks : {1, 2, 256, 257, 1000, 100003}) {
    for (double exponent : {0.0, 1.05, 2.0, 20.0}) {
      const ZipfLaw law(ranks, exponent);
      std::vector<uint64_t> edges;  // first quantile of each rank, as far as there is one
      for (int64_t k = 0; k < ranks && law.cumulative(k) < 1; ++k) {
        edges.push_back(static_cast<uint64_t>(law.cumulative(k) * 0x1p64));
      }
      std::vector<uint64_t> places{0, ~uint64_t{0}};
      for (int i = 0; i < 2000; ++i) places.push_back(random.bits64(i));
      for (size_t k = 1; k < edges.size(); k += 1 + k / 256) {
        places.insert(places.end(), {edges[k] - 1, edges[k], edges[k] + 1});
      }
      std::sort(places.begin(), places.end());
      int64_t before = 0;
      for (uint64_t at : places) {
        const int64_t rank = law.quantile(at);
        ASSERT_GE(rank, before);
        before = rank;
        const auto found = std::upper_bound(edges.begin(), edges.end(), at) - edges.begin() - 1;
        if (found < 256) {
          ASSERT_EQ(rank, found) << ranks << " ranks, exponent " << exponent << ", at " << at;
          continue;
        }
        // In wider buckets the shares are rounded, to 2^-53 of 1.
        ASSERT_TRUE(edges[rank] <= at || edges[rank] - at < 4096) << at;
        ASSERT_TRUE(rank + 1 >= std::ssize(edges) || at < edges[rank + 1] ||
                    at - edges[rank + 1] < 4096)
            << at;
      }
      if (exponent < 20) {
        EXPECT_EQ(before, ranks - 1);
      }
    }
  }
}

TEST(ZipfLaw, draws_by_quantile_with_its_own_probabilities) {
  const int64_t ranks = 5000;
  const ZipfLaw law(ranks, 1.05);
  const Random random(13, Purpose::test);
  const int draws = 1000000;
  std::vector<int> counts(ranks);
  for (int i = 0; i < draws; ++i) ++counts[law.quantile(random.bits64(i))];
  double chi2 = 0;
  for (int64_t k = 0; k < ranks; ++k) {
    const double expected = draws * law.probability(k);
    chi2 += (counts[k] - expected) * (counts[k] - expected) / expected;
  }
  EXPECT_NEAR(chi2, 4999, 500);
}

TEST(ZipfLaw, finds_the_exponent_of_a_chosen_skew) {
  for (int64_t ranks : {1000, 1000000}) {
    for (const auto& [top, access] :
         {std::pair{0.01, 0.1}, std::pair{0.01, 0.54}, std::pair{0.1, 0.9}, std::pair{0.2, 0.2}}) {
      const auto exponent = ZipfLaw::exponent_for(ranks, top, access);
      ASSERT_TRUE(exponent.ok()) << exponent.status().message();
      const ZipfLaw law(ranks, *exponent);
      EXPECT_NEAR(law.cumulative(static_cast<int64_t>(top * ranks)), access, 1e-6);
    }
  }
  EXPECT_FALSE(ZipfLaw::exponent_for(1000, 0.5, 0.2).ok());
}

}  // namespace recmill::reader
