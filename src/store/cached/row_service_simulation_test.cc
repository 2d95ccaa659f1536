// SPDX-License-Identifier: Apache-2.0
#include "store/cached/testing/row_service_simulation.h"

#include <gtest/gtest.h>

namespace recmill::store::testing {
namespace {

TEST(RowService, loses_no_update_and_reads_no_stale_row_in_ten_thousand_schedules) {
  ServiceOutcome all;
  for (uint64_t seed = 0; seed < 10'000; ++seed) {
    const ServiceOutcome of = simulate_service({.seed = seed});
    ASSERT_EQ(of.wrong, "") << "seed " << seed;
    all.restarts += of.restarts;
    all.anew += of.anew;
    all.commits += of.commits;
    all.checkpoints += of.checkpoints;
    all.broken += of.broken;
  }
  // The schedules have what they are for.
  EXPECT_GT(all.restarts, 1000);
  EXPECT_GT(all.anew, 1000);
  EXPECT_GT(all.commits, 5000);
  EXPECT_GT(all.checkpoints, 1000);
  EXPECT_GT(all.broken, 10'000);
}

/// In how many of some schedules something goes wrong.
int failures(ServiceSimulation of) {
  int failed = 0;
  for (of.seed = 0; of.seed < 600; ++of.seed) failed += simulate_service(of).wrong.empty() ? 0 : 1;
  return failed;
}

TEST(RowService, needs_each_wait_fence_and_check) {
  EXPECT_EQ(failures({}), 0);
  EXPECT_GT(failures({.checks = {.fences = false}}), 0);
  EXPECT_GT(failures({.checks = {.terms = false}}), 0);
  EXPECT_GT(failures({.checks = {.repeats = false}}), 0);
  EXPECT_GT(failures({.checks = {.whole_cuts = false}}), 0);
  EXPECT_GT(failures({.checks = {.goes_back = false}}), 0);
  EXPECT_GT(failures({.checks = {.instances = false}}), 0);
  EXPECT_GT(failures({.mover = {.fill_for_rows = false}}), 0);
  EXPECT_GT(failures({.mover = {.leave_for_end = false}}), 0);
  EXPECT_GT(failures({.lookups_wait = false}), 0);
  EXPECT_GT(failures({.fences = false}), 0);
  EXPECT_GT(failures({.cut_in_order = false}), 0);
  EXPECT_GT(failures({.record_waits = false}), 0);
  EXPECT_GT(failures({.release_waits = false}), 0);
}

TEST(RowService, does_the_same_with_the_same_seed) {
  const auto one = simulate_service({.seed = 77}), other = simulate_service({.seed = 77});
  EXPECT_EQ(one.commits, other.commits);
  EXPECT_EQ(one.broken, other.broken);
}

}  // namespace
}  // namespace recmill::store::testing
