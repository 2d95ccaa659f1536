// SPDX-License-Identifier: Apache-2.0
#include "hotset/hot_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace recmill::hotset {
namespace {

using Blocks = std::vector<std::pair<int64_t, int64_t>>;

Blocks of_rates(const HotBatches& epoch, std::span<const double> rates) {
  Blocks blocks;
  HotBatches done;
  Percent sum;
  for (const double rate : rates) {
    sum = sum + *Percent::of(rate);
    blocks.emplace_back(sum.share_of(epoch.cold) - done.cold, sum.share_of(epoch.hot) - done.hot);
    done = {sum.share_of(epoch.cold), sum.share_of(epoch.hot)};
  }
  return blocks;
}

std::vector<double> rates_after(std::span<const double> losses) {
  ScheduleState state = first_schedule(*Percent::of(kFirstRate));
  std::vector<double> rates{state.rate.value()};
  for (const double loss : losses) {
    state = next_schedule(judged(state, loss));
    rates.push_back(state.rate.value());
  }
  return rates;
}

TEST(HotSchedule, cuts_both_kinds_into_as_many_blocks) {
  ScheduleState state = first_schedule(*Percent::of(25));
  std::span<const double> none;
  Blocks blocks;
  for (const Block& block : blocks_of_epoch({37, 91}, none, state))
    blocks.emplace_back(block.cold, block.hot);
  EXPECT_EQ(blocks, (Blocks{{10, 23}, {9, 23}, {9, 23}, {9, 22}}));
  EXPECT_EQ(state.schedule, 4);
  EXPECT_EQ(state.done, *Percent::of(25));
  EXPECT_EQ(of_rates({37, 91}, std::vector<double>{25, 12.5, 12.5, 12.5, 12.5, 25}),
            (Blocks{{10, 23}, {4, 12}, {5, 11}, {5, 11}, {4, 12}, {9, 22}}));
}

TEST(HotSchedule, has_the_rates_that_losses_make) {
  const double losses[] = {.50, .49, .48, .47, .46, .47, .48, .47, .46, .45, .44};
  EXPECT_THAT(rates_after(losses),
              ::testing::ElementsAre(50, 50, 50, 50, 50, 100, 50, 25, 25, 25, 25, 50));
}

TEST(HotSchedule, begins_the_count_of_decreases_anew_at_an_equal_loss) {
  const double losses[] = {.5, .4, .3, .2, .2, .1, .09, .08, .07};
  EXPECT_THAT(rates_after(losses), ::testing::ElementsAre(50, 50, 50, 50, 50, 50, 50, 50, 50, 100));
}

TEST(HotSchedule, keeps_rates_between_1_and_100_and_halves_exactly) {
  std::vector<double> losses;
  for (int i = 0; i < 9; ++i) losses.push_back(i);
  EXPECT_THAT(rates_after(losses),
              ::testing::ElementsAre(50, 50, 25, 12.5, 6.25, 3.125, 1.5625, 1, 1, 1));
  for (int i = 0; i < 40; ++i) losses.push_back(-i);
  const std::vector<double> rates = rates_after(losses);
  EXPECT_EQ(rates[rates.size() - 1], 100);
  EXPECT_THAT(rates, ::testing::Contains(64));
}

TEST(HotSchedule, takes_decimals_as_they_are_written) {
  for (int64_t millionths = 1; millionths <= 100'000'000; millionths += 37'321) {
    const double percent = static_cast<double>(millionths) / 1e6;
    ASSERT_TRUE(Percent::of(percent)) << percent;
    EXPECT_EQ(Percent::of(percent)->value(), percent);
    EXPECT_EQ(Percent::of(percent)->share_of(100'000'000), millionths) << percent;
  }
  for (const double wrong : {0.0, -1.0, 100.1, 0.0000001, std::nan("")})
    EXPECT_FALSE(Percent::of(wrong)) << wrong;
}

TEST(HotSchedule, trains_each_batch_once_an_epoch_whatever_the_losses) {
  const Random random(1, Purpose::test, 0);
  ScheduleState state = first_schedule(*Percent::of(kFirstRate));
  for (uint64_t epoch = 0; epoch < 2000; ++epoch) {
    const HotBatches batches{static_cast<int64_t>(random.uniform64(epoch, 0) * 40),
                             static_cast<int64_t>(random.uniform64(epoch, 1) * 300)};
    std::vector<double> losses;
    for (uint64_t i = 0; i < 100; ++i) losses.push_back(random.uniform64(epoch, 2 + i));
    std::span<const double> left = losses;
    int64_t cold = 0, hot = 0, schedule = state.schedule;
    for (const Block& block : blocks_of_epoch(batches, left, state)) {
      EXPECT_GE(block.schedule, schedule);
      EXPECT_GE(block.cold, 0);
      EXPECT_GE(block.hot, 0);
      EXPECT_GT(block.cold + block.hot, 0);
      schedule = block.schedule + 1;
      cold += block.cold;
      hot += block.hot;
    }
    EXPECT_EQ(cold, batches.cold);
    EXPECT_EQ(hot, batches.hot);
    EXPECT_EQ(state.done, state.rate);
    EXPECT_FALSE(state.judged);
  }
}

}  // namespace
}  // namespace recmill::hotset
