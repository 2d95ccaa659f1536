// SPDX-License-Identifier: Apache-2.0
#include "hotset/block_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/random.h"
#include "hotset/hot_cutoff.h"

namespace recmill::hotset {
namespace {

constexpr int64_t kIds = 20'000;

/// Inputs of two ids and a bag of 0 to 3, of three tables, skewed.
struct Log {
  std::vector<int64_t> first_rows;            // [blocks + 1], of inputs
  std::vector<std::vector<int64_t>> lookups;  // [inputs], ids of all tables
  int64_t blocks() const { return std::ssize(first_rows) - 1; }
  int64_t inputs() const { return std::ssize(lookups); }
};

/// Popularity moves on by `drift` ids from the first block to the last. Blocks have 20 to 59 rows.
Log make_log(int64_t blocks, double drift, uint64_t seed) {
  Log log;
  log.first_rows = {0};
  const Random random(seed, Purpose::test);
  for (int64_t b = 0; b < blocks; ++b) {
    const auto rows = 20 + static_cast<int64_t>(random.below(40, b, 99));
    const auto moved = static_cast<int64_t>(drift * static_cast<double>(b) / blocks);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t input = log.inputs();
      std::vector<int64_t>& ids = log.lookups.emplace_back();
      const auto draw = [&](int64_t table) {  // 1 / rank: an exponential of an even number
        const double u = random.uniform64(input, ids.size());
        const auto rank = static_cast<int64_t>(std::exp(u * std::log(double{kIds}))) - 1;
        ids.push_back(table * kIds + (rank + moved) % kIds);
      };
      draw(0);
      draw(1);
      for (uint64_t left = random.below(4, input, 98); left > 0; --left) draw(2);
    }
    log.first_rows.push_back(log.inputs());
  }
  return log;
}

BlockTally tally_of(const Log& log, int64_t block, const std::vector<int64_t>& counts,
                    int64_t cutoff) {
  BlockTally tally;
  for (int64_t i = log.first_rows[block]; i < log.first_rows[block + 1]; ++i) {
    int64_t hot = 0;
    for (int64_t id : log.lookups[i]) hot += counts[id] >= cutoff;
    tally += {1, 1, std::ssize(log.lookups[i]), hot == std::ssize(log.lookups[i]), hot};
  }
  return tally;
}

/// One run of the sampler.
struct Outcome {
  HotShares estimated;
  double lookups = 0, inputs = 0;  // shares of all data
  double of_counted = 0;           // share of the lookups that were counted
};

Outcome run_sampler(const Log& log, double share, int64_t cutoff, uint64_t seed) {
  const auto sample = sample_blocks(log.blocks(), share, seed);
  std::vector<int64_t> counts(3 * kIds);
  int64_t rest_rows = log.inputs();
  for (const SampledBlock& s : sample) {
    if (s.judges) continue;
    for (int64_t i = log.first_rows[s.block]; i < log.first_rows[s.block + 1]; ++i, --rest_rows) {
      for (int64_t id : log.lookups[i]) ++counts[id];
    }
  }
  BlockTally counted, all;
  std::vector<BlockTally> judging;
  int64_t rest_blocks = log.blocks();
  for (const SampledBlock& s : sample) {
    const BlockTally tally = tally_of(log, s.block, counts, cutoff);
    if (s.judges) {
      judging.push_back(tally);
    } else {
      counted += tally;
      --rest_blocks;
    }
  }
  for (int64_t b = 0; b < log.blocks(); ++b) all += tally_of(log, b, counts, cutoff);
  return {estimate_hot_shares(counted, judging, rest_blocks, rest_rows),
          static_cast<double>(all.hot_lookups) / static_cast<double>(all.lookups),
          static_cast<double>(all.hot_inputs) / static_cast<double>(all.inputs),
          static_cast<double>(counted.hot_lookups) / static_cast<double>(counted.lookups)};
}

bool holds(const ShareEstimate& estimate, double truth) {
  return estimate.low <= truth && truth <= estimate.high;
}

}  // namespace

TEST(BlockSample, draws_exactly_the_share_that_was_asked_for_and_judges_by_a_quarter) {
  for (int64_t blocks : {0, 1, 7, 8, 9, 100, 199, 200, 201, 250, 399, 8000}) {
    for (double share : {0.001, 0.05, 0.1, 0.5, 0.99, 1.0}) {
      for (uint64_t seed : {1, 2, 3}) {
        const auto sample = sample_blocks(blocks, share, seed);
        const int64_t wanted = std::min(blocks, std::max<int64_t>(cutoff_of(share, blocks), 8));
        ASSERT_EQ(std::ssize(sample), wanted) << blocks << " blocks, share " << share;
        int64_t judges = 0, before = -1;
        for (const SampledBlock& s : sample) {
          ASSERT_LT(before, s.block);
          ASSERT_LT(s.block, blocks);
          before = s.block;
          judges += s.judges;
        }
        if (wanted == blocks) {
          EXPECT_EQ(judges, 0);
        } else {
          EXPECT_EQ(judges, wanted / 4);
          EXPECT_GE(judges, 2);
        }
        EXPECT_EQ(sample, sample_blocks(blocks, share, seed));
      }
    }
  }
}

TEST(BlockSample, counts_one_of_each_of_200_strata_and_more_where_the_share_asks_for_them) {
  const int64_t blocks = 20'000;
  for (const auto& [share, drawn_of_each] : {std::pair{0.0133, 1}, {0.04, 3}, {0.08, 6}}) {
    std::array<int64_t, 200> of_stratum{};
    for (const SampledBlock& s : sample_blocks(blocks, share, 5)) {
      if (!s.judges) ++of_stratum[s.block / 100];
    }
    for (int64_t drawn : of_stratum) EXPECT_EQ(drawn, drawn_of_each);
  }
}

TEST(BlockSample, draws_every_block_as_often_and_for_either_part) {
  constexpr int64_t kBlocks = 37, kSeeds = 4000;
  std::array<int64_t, kBlocks> drawn{}, judged{};
  for (int64_t seed = 0; seed < kSeeds; ++seed) {
    for (const SampledBlock& s : sample_blocks(kBlocks, 0.3, static_cast<uint64_t>(seed))) {
      ++drawn[s.block];
      judged[s.block] += s.judges;
    }
  }
  // 9 of 37 count, one of 4 or of 5 each; 3 of the other 28 judge.
  for (int64_t b = 0; b < kBlocks; ++b) {
    const auto counted = static_cast<double>(drawn[b] - judged[b]);
    EXPECT_NEAR(counted / kSeeds, b < 32 ? 0.25 : 0.2, 0.03) << b;
    EXPECT_NEAR(static_cast<double>(judged[b]) / (kSeeds - counted), 3.0 / 28, 0.02) << b;
  }
}

TEST(BlockSample, holds_the_true_shares_in_its_intervals) {
  constexpr int64_t kSeeds = 200;
  struct Case {
    int64_t blocks;
    double drift, share;
    int64_t cutoff;
  };
  for (const Case& c : {Case{1000, 0, 0.05, 2}, Case{1000, 0, 0.2, 4}, Case{1000, 3'000, 0.2, 4},
                        Case{1000, 15'000, 0.1, 2}, Case{150, 3'000, 0.5, 2}}) {
    const Log log = make_log(c.blocks, c.drift, 11);
    int64_t lookups_held = 0, inputs_held = 0, within_counted = 0;
    double error = 0, width = 0;
    for (int64_t seed = 1; seed <= kSeeds; ++seed) {
      const Outcome o = run_sampler(log, c.share, c.cutoff, static_cast<uint64_t>(seed));
      lookups_held += holds(o.estimated.lookups, o.lookups);
      inputs_held += holds(o.estimated.inputs, o.inputs);
      within_counted += o.of_counted <= o.estimated.lookups.high;
      error += (o.estimated.lookups.share - o.lookups) / kSeeds;
      width += (o.estimated.lookups.high - o.estimated.lookups.low) / kSeeds;
    }
    const std::string what = std::to_string(c.blocks) + " blocks, drift " +
                             std::to_string(c.drift) + ", share " + std::to_string(c.share) +
                             ", seeds 1 to 200";
    EXPECT_GE(lookups_held, kSeeds * 97 / 100) << what;
    EXPECT_GE(inputs_held, kSeeds * 97 / 100) << what;
    EXPECT_LT(std::abs(error), 0.1 * width) << what;
    // The share of what was counted says something else.
    EXPECT_LT(within_counted, c.share < 0.5 ? kSeeds / 10 : kSeeds) << what;
  }
}

TEST(BlockSample, is_exact_where_nothing_is_left_to_guess) {
  const BlockTally counted{100, 90, 200, 30, 120};
  const HotShares all = estimate_hot_shares(counted, {}, 0, 0);
  EXPECT_EQ(all.lookups, (ShareEstimate{0.6, 0.6, 0.6}));
  EXPECT_EQ(all.inputs.share, 30.0 / 90);
  EXPECT_EQ(all.inputs.low, all.inputs.high);
  // All of the rest judges.
  const std::vector<BlockTally> judging{{50, 50, 100, 10, 40}, {10, 10, 20, 0, 5}};
  const HotShares judged = estimate_hot_shares(counted, judging, 2, 60);
  EXPECT_EQ(judged.lookups, (ShareEstimate{165.0 / 320, 165.0 / 320, 165.0 / 320}));
  EXPECT_EQ(judged.inputs, (ShareEstimate{40.0 / 150, 40.0 / 150, 40.0 / 150}));
}

TEST(BlockSample, says_that_the_rest_may_be_anything_where_too_little_judges) {
  const BlockTally counted{100, 100, 200, 30, 120};
  const std::vector<BlockTally> one{{50, 50, 100, 10, 40}};
  EXPECT_NEAR(estimate_hot_shares(counted, one, 5, 250).lookups.low, 120.0 / 700, 1e-12);
  EXPECT_NEAR(estimate_hot_shares(counted, one, 5, 250).lookups.high, 620.0 / 700, 1e-12);
  EXPECT_EQ(estimate_hot_shares(counted, {}, 5, 250).inputs.high, 1);
  EXPECT_EQ(estimate_hot_shares({}, {}, 0, 0), HotShares{});
}

TEST(BlockSample, widens_its_interval_as_in_the_formula) {
  // Three judges of ten rest blocks, equal rows: share 0.5, deviations -1, 0, 1 of 10 lookups each.
  const std::vector<BlockTally> judging{{5, 5, 10, 0, 4}, {5, 5, 10, 0, 5}, {5, 5, 10, 0, 6}};
  const ShareEstimate e = estimate_hot_shares({}, judging, 10, 50).lookups;
  EXPECT_EQ(e.share, 0.5);
  // As many trials as have that error: above the 30 / 0.7 that there were.
  const double trials = 30 / 0.7;
  const double t = 9.92484, a = t * t / trials;
  const double half = std::sqrt(a * (0.25 + a / 4)) / (1 + a);
  EXPECT_GT(0.25 / ((1 - 0.3) * 1.0 / 3 / 100), trials);
  EXPECT_NEAR(e.high - e.share, half, 1e-5);
  EXPECT_NEAR(e.share - e.low, half, 1e-5);
  // Blocks that differ by more are fewer trials.
  const std::vector<BlockTally> apart{{5, 5, 10, 0, 1}, {5, 5, 10, 0, 5}, {5, 5, 10, 0, 9}};
  const double fewer = 0.25 / ((1 - 0.3) * 16.0 / 3 / 100), b = t * t / fewer;
  EXPECT_LT(fewer, trials);
  const ShareEstimate wider = estimate_hot_shares({}, apart, 10, 50).lookups;
  EXPECT_NEAR(wider.high - wider.share, std::sqrt(b * (0.25 + b / 4)) / (1 + b), 1e-5);
  // None is hot: still some may be.
  const std::vector<BlockTally> cold{{5, 5, 10, 0, 0}, {5, 5, 10, 0, 0}, {5, 5, 10, 0, 0}};
  const ShareEstimate none = estimate_hot_shares({}, cold, 10, 50).lookups;
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, a / (1 + a), 1e-5);
}

}  // namespace recmill::hotset
