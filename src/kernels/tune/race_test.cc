// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/race.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/standing_clock.h"

namespace recmill::kernels::tune {
namespace {

/// Entrants that take `costs` nanoseconds, on a machine that is `slower` at some runs.
struct Track {
  explicit Track(std::vector<double> of) : costs(std::move(of)) {
    for (size_t e = 0; e < costs.size(); ++e) {
      entrants.emplace_back([this, e]() -> Result<double> {
        const double took = costs[e] * slower(runs++);
        order += static_cast<char>('a' + e);
        clock.pass(took);
        return took * 1e-9;
      });
    }
  }
  Track(const Track&) = delete;

  std::vector<double> race(const RaceOptions& options) {
    const std::atomic<bool> never{false};
    auto seconds = tune::race(entrants, options, clock, never);
    EXPECT_TRUE(seconds.ok()) << seconds.status().message();
    for (double& of : *seconds) of *= 1e9;
    return *seconds;
  }

  std::vector<double> costs;
  std::function<double(int)> slower = [](int) { return 1.0; };
  int runs = 0;
  std::string order;  // of runs
  StandingClock clock;
  std::vector<Entrant> entrants;
};

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t e = 0; e < found.size(); ++e) EXPECT_NEAR(found[e], wanted[e], 1e-6) << e;
}

TEST(Race, begins_each_round_with_another_entrant) {
  Track track({30.0, 20.0, 10.0});
  expect_near(track.race({.rounds = 4}), {30.0, 20.0, 10.0});
  EXPECT_EQ(track.order, "abcbcacababc");
}

TEST(Race, is_not_decided_by_a_machine_that_slows_down_while_some_of_them_run) {
  Track track({20.0, 19.0, 21.0});
  track.slower = [](int run) { return run >= 13 ? 2.0 : 1.0; };  // from the middle of a round on
  const auto found = track.race({.rounds = 9});
  EXPECT_LT(found[1], found[0]);
  EXPECT_GT(found[2], found[0]);
  EXPECT_NEAR(found[1] / found[0], 19.0 / 20.0, 1e-9);
  EXPECT_NEAR(found[2] / found[0], 21.0 / 20.0, 1e-9);
}

TEST(Race, is_not_decided_by_hiccups_that_meet_one_entrant) {
  Track track({20.0, 10.0});
  int others = 0;
  track.slower = [&](int) {
    return track.order.size() % 2 == 1 && ++others % 5 == 0 ? 100.0 : 1.0;
  };
  expect_near(track.race({.rounds = 15}), {20.0, 10.0});
}

TEST(Race, is_not_decided_by_a_place_that_costs) {
  for (const int64_t rounds : {4, 8, 16}) {
    Track track({20.0, 20.0});
    track.slower = [](int run) { return run % 2 == 0 ? 1.25 : 1.0; };  // who is first
    const auto found = track.race({.rounds = rounds});
    EXPECT_NEAR(found[1] / found[0], 1.0, 1e-9) << rounds;
  }
}

TEST(Race, leaves_out_who_is_far_behind_after_five_rounds_but_not_whom_all_are_compared_with) {
  Track track({30.0, 20.0, 22.5, 21.0});
  expect_near(track.race({.rounds = 7, .far_behind = 1.1}), {30.0, 20.0, 22.5, 21.0});
  EXPECT_EQ(std::ranges::count(track.order, 'a'), 7);
  EXPECT_EQ(std::ranges::count(track.order, 'c'), 5);
  EXPECT_EQ(std::ranges::count(track.order, 'd'), 7);
}

TEST(Race, goes_on_until_small_work_took_long_enough_and_ends_with_its_time) {
  Track small({10.0, 30.0});
  small.race({.rounds = 3, .seconds = 200e-9});
  EXPECT_EQ(small.order.size(), 2u * 10);
  Track tiny({1.0, 1.0});
  tiny.race({.rounds = 3, .seconds = 1.0});
  EXPECT_EQ(tiny.order.size(), 2u * 100);
  Track brief({10.0, 10.0});
  brief.race({.rounds = 50, .until_ns = 0});
  EXPECT_EQ(brief.order.size(), 2u * 3);
}

TEST(Race, ends_with_the_first_error_or_when_it_is_told) {
  StandingClock clock;
  std::atomic<bool> stop{false};
  const std::vector<Entrant> entrants{[&]() -> Result<double> {
                                        stop = true;
                                        return 1.0;
                                      },
                                      []() -> Result<double> { return Status::Failed("fell"); }};
  EXPECT_EQ(race(entrants, {}, clock, stop).status().message(), "interrupted");
  stop = false;
  const std::vector<Entrant> falls{entrants[1]};
  EXPECT_EQ(race(falls, {}, clock, stop).status().message(), "fell");
}

}  // namespace
}  // namespace recmill::kernels::tune
