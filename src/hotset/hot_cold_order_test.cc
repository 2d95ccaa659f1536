// SPDX-License-Identifier: Apache-2.0
#include "hotset/hot_cold_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace recmill::hotset {
namespace {

using Step = HotColdOrder::Step;

char letter_of(Step step) {
  return "chju!"[static_cast<int>(step)];
}

/// Epochs of batches as the definition has them: c and h are batches, j a judgement.
std::string plain_order(const HotBatches& epoch, std::vector<double> losses, int64_t epochs,
                        bool hot_first = false) {
  std::string order;
  ScheduleState state = first_schedule(*Percent::of(kFirstRate));
  std::span<const double> left = losses;
  for (int64_t e = 0; e < epochs; ++e) {
    for (const Block& block : blocks_of_epoch(epoch, left, state)) {
      const std::string cold(static_cast<size_t>(block.cold), 'c');
      const std::string hot(static_cast<size_t>(block.hot), 'h');
      order += (hot_first ? hot + cold : cold + hot) + 'j';
    }
  }
  return order;
}

std::vector<double> drawn_losses(uint64_t seed, uint64_t count) {
  const Random random(seed, Purpose::test, 0);
  std::vector<double> losses;
  double loss = 1.0;
  for (uint64_t i = 0; i < count; ++i) {
    const double draw = random.uniform64(seed, i);
    if (draw < 0.75) loss -= 0.001;
    if (draw > 0.85) loss += 0.001;
    losses.push_back(loss);
  }
  return losses;
}

/// The order, told each loss only where it must be.
std::string driven_order(const HotBatches& epoch, const RatePolicy& policy,
                         const std::vector<double>& losses, int64_t epochs, int64_t* prepared) {
  const OrderPlace start{policy.first(), {}};
  HotColdOrder order(epoch, policy, start);
  ScheduleFollower follower(epoch, policy, start);
  std::string steps, untrained;
  size_t judged = 0;
  const auto catch_up = [&] {
    for (const char c : untrained) follower.trained(c == 'h' ? BatchKind::hot : BatchKind::cold);
    untrained.clear();
  };
  const auto judge = [&] {
    follower.judge(losses.at(judged++));
    order.judge(follower.state());
    catch_up();
  };
  bool waits = false;
  for (int64_t ended = 0;;) {
    const Step step = order.next();
    if (step == Step::unknown) {
      judge();
      waits = false;
      continue;
    }
    if (ended == epochs && step != Step::judge) return steps;
    steps += letter_of(step);
    if (step == Step::judge) {
      if (ended == epochs) return steps;
      waits = true;
      continue;
    }
    untrained += letter_of(step);
    if (waits) ++*prepared;
    if (!waits) catch_up();
    ended += order.ends_epoch();
    if (ended == epochs && waits) {
      judge();
      waits = false;
    }
    if (ended == epochs && !policy.adapts()) return steps;
  }
}

TEST(HotColdOrder, is_that_of_the_definition_whatever_is_prepared_before_a_loss_is_known) {
  int64_t prepared = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Random random(seed, Purpose::test, 1);
    const HotBatches epoch{static_cast<int64_t>(random.uniform64(0, 0) * 60),
                           1 + static_cast<int64_t>(random.uniform64(0, 1) * 200)};
    RatePolicy policy;
    policy.hot_first = seed % 3 == 0;
    const auto losses = drawn_losses(seed, 2000);
    EXPECT_EQ(driven_order(epoch, policy, losses, 3, &prepared),
              plain_order(epoch, losses, 3, policy.hot_first))
        << "seed " << seed;
  }
  EXPECT_GT(prepared, 1000);
}

TEST(HotColdOrder, goes_on_from_every_batch_of_it) {
  const HotBatches epoch{37, 91};
  const RatePolicy policy;
  const auto losses = drawn_losses(5, 2000);
  const std::string whole = plain_order(epoch, losses, 2);
  HotColdOrder order(epoch, policy, {policy.first(), {}});
  ScheduleFollower follower(epoch, policy, {policy.first(), {}});
  size_t judged = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == 'j') {
      follower.judge(losses[judged++]);
      continue;
    }
    follower.trained(whole[i] == 'h' ? BatchKind::hot : BatchKind::cold);
    // As a run that is resumed here.
    HotColdOrder resumed(epoch, policy, {follower.state(), follower.trained()});
    Step step = resumed.next();
    ASSERT_EQ(letter_of(step), whole[i + 1]) << i;
    if (step != Step::judge || i + 2 >= whole.size()) continue;
    ScheduleState after = follower.state();
    after = hotset::judged(after, losses[judged]);
    resumed.judge(after);
    EXPECT_EQ(letter_of(resumed.next()), whole[i + 2]) << i;
    // And one whose checkpoint is behind the evaluation.
    HotColdOrder behind(epoch, policy, {after, follower.trained()});
    EXPECT_EQ(letter_of(behind.next()), whole[i + 2]) << i;
  }
}

TEST(HotColdOrder, repeats_the_rates_of_another_run) {
  const HotBatches epoch{37, 91};
  const auto losses = drawn_losses(5, 2000);
  const std::string whole = plain_order(epoch, losses, 2);
  RatePolicy policy;
  std::span<const double> left = losses;
  ScheduleState state = policy.first();
  for (int e = 0; e < 2; ++e)
    for (const Block& block : blocks_of_epoch(epoch, left, state))
      policy.repeated.emplace(block.schedule, block.rate);
  std::string repeated = whole;
  std::erase(repeated, 'j');
  int64_t prepared = 0;
  EXPECT_EQ(driven_order(epoch, policy, {}, 2, &prepared), repeated);
  HotColdOrder order(epoch, policy, {policy.first(), {}});
  for (size_t i = 0; i < repeated.size(); ++i) order.next();
  EXPECT_EQ(order.next(), Step::missing);
  EXPECT_EQ(order.next(), Step::missing);
}

TEST(HotColdOrder, has_no_judgement_where_the_rate_is_fixed) {
  RatePolicy policy;
  policy.fixed = Percent::of(25);
  int64_t prepared = 0;
  const std::string blocks = std::string(10, 'c') + std::string(23, 'h') + std::string(9, 'c') +
                             std::string(23, 'h') + std::string(9, 'c') + std::string(23, 'h') +
                             std::string(9, 'c') + std::string(22, 'h');
  EXPECT_EQ(driven_order({37, 91}, policy, {}, 2, &prepared), blocks + blocks);
}

}  // namespace
}  // namespace recmill::hotset
