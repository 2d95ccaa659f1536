// SPDX-License-Identifier: Apache-2.0
#include "server/unit_watch.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace recmill::server {
namespace {

constexpr WatchLimits kLimits{.start_seconds = 60, .silence_seconds = 5, .settle_seconds = 2};

/// Three ranks, all come at 1 s.
UnitWatch three() {
  UnitWatch watch({.limits = kLimits}, 0, 3, 0.0);
  for (int rank = 0; rank < 3; ++rank)
    watch.came(rank, "h" + std::to_string(rank), 100 + rank, 1.0);
  return watch;
}

void hear_all(UnitWatch& watch, double now) {
  for (int rank = 0; rank < 3; ++rank) watch.heard(rank, now);
}

TEST(UnitWatch, runs_until_all_have_ended_well) {
  UnitWatch watch = three();
  EXPECT_TRUE(watch.ready());
  EXPECT_EQ(watch.judge(2.0).state, UnitState::runs);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(watch.judge(3.0).state, UnitState::runs);
    watch.exited(rank, 0, 3.0);
  }
  EXPECT_EQ(watch.judge(3.0).state, UnitState::done);
  watch.launcher_ended("mpirun ended with status 0", 3.5);
  EXPECT_EQ(watch.judge(100.0).state, UnitState::done);
}

TEST(UnitWatch, names_a_killed_and_a_stopped_rank_at_once) {
  UnitWatch watch = three();
  watch.killed(1, SIGKILL, 2.0);
  EXPECT_EQ(watch.judge(2.0).state, UnitState::lost);
  EXPECT_EQ(watch.judge(2.0).why.message(),
            "rank 1 on h1 (process 101) was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(watch.judge(2.0).lost_host, "");
  UnitWatch other = three();
  other.stopped(2, SIGSTOP, 2.0);
  EXPECT_EQ(other.judge(2.0).why.message(),
            "rank 2 on h2 (process 102) was stopped by signal 19 (SIGSTOP)");
}

TEST(UnitWatch, a_crash_is_the_programs_failure) {
  UnitWatch watch = three();
  watch.killed(1, SIGSEGV, 2.0);
  watch.killed(0, SIGKILL, 2.5);
  EXPECT_EQ(watch.judge(3.0).state, UnitState::failed);
  EXPECT_EQ(watch.judge(3.0).why.message(),
            "rank 1 on h1 (process 101) crashed by signal 11 (SIGSEGV)");
}

TEST(UnitWatch, the_earliest_loss_is_the_cause) {
  UnitWatch watch = three();
  watch.killed(2, SIGKILL, 2.0);
  watch.killed(0, SIGABRT, 2.1);
  watch.vanished(1, 2.2);
  watch.vanished(2, 2.3);  // after its end
  EXPECT_EQ(watch.judge(2.3).why.message(),
            "rank 2 on h2 (process 102) was killed by signal 9 (SIGKILL)");
}

TEST(UnitWatch, a_rank_that_is_silent_takes_its_host_along) {
  UnitWatch watch = three();
  hear_all(watch, 4.0);
  watch.heard(0, 8.0);
  watch.heard(2, 8.0);
  EXPECT_EQ(watch.judge(9.0).state, UnitState::runs);
  const Verdict verdict = watch.judge(9.1);
  EXPECT_EQ(verdict.state, UnitState::lost);
  EXPECT_EQ(verdict.lost_host, "h1");
  EXPECT_EQ(verdict.why.message(),
            "rank 1 on h1 (process 101) has given no sign of life for 5 s: its host or the way to "
            "it is lost");
}

TEST(UnitWatch, an_error_of_the_program_is_told_when_no_loss_explains_it) {
  UnitWatch watch = three();
  watch.exited(1, 1, 2.0);
  hear_all(watch, 3.0);
  EXPECT_EQ(watch.judge(3.9).state, UnitState::runs);
  EXPECT_EQ(watch.judge(4.0).state, UnitState::failed);
  EXPECT_EQ(watch.judge(4.0).why.message(), "rank 1 on h1 (process 101) ended with status 1");
  EXPECT_EQ(watch.judge(4.0).why.code(), Status::Code::failed);
  watch.killed(0, SIGKILL, 3.9);
  EXPECT_EQ(watch.judge(4.0).state, UnitState::lost);

  UnitWatch refused = three();
  for (int rank = 0; rank < 3; ++rank) refused.exited(rank, 2, 2.0);
  EXPECT_EQ(refused.judge(2.0).state, UnitState::failed);
  EXPECT_EQ(refused.judge(2.0).why.code(), Status::Code::bad_request);
  EXPECT_EQ(refused.judge(2.0).why.message(), "every rank ended with status 2");
}

TEST(UnitWatch, names_who_does_not_start) {
  UnitWatch watch({.limits = kLimits}, 0, 2, 10.0);
  watch.came(0, "h0", 100, 11.0);
  for (double now = 11.0; now < 70.0; now += 1.0) watch.heard(0, now);
  EXPECT_FALSE(watch.ready());
  EXPECT_EQ(watch.judge(70.0).state, UnitState::runs);
  EXPECT_EQ(watch.judge(70.1).why.message(), "rank 1 has not started within 60 s");
  watch.launcher_ended("mpirun ended with status 213", 60.0);
  EXPECT_EQ(watch.judge(62.1).why.message(), "mpirun ended with status 213 before rank 1 started");
}

TEST(UnitWatch, ranks_do_not_outlive_their_launcher) {
  UnitWatch watch = three();
  watch.launcher_ended("mpirun was killed by signal 9", 2.0);
  hear_all(watch, 4.0);
  EXPECT_EQ(watch.judge(4.0).state, UnitState::runs);
  EXPECT_EQ(watch.judge(4.1).state, UnitState::lost);
  EXPECT_EQ(watch.judge(4.1).why.message(),
            "mpirun was killed by signal 9 while rank 0 on h0 (process 100) was running");
}

}  // namespace
}  // namespace recmill::server
