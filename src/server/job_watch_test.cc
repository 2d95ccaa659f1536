// SPDX-License-Identifier: Apache-2.0
#include "server/job_watch.h"

#include <gmock/gmock.h>
#include <signal.h>

namespace recmill::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr WatchLimits kLimits{.start_seconds = 60, .silence_seconds = 5, .settle_seconds = 2};

Role servers(const std::string& name, int count, Restart restart) {
  return {.name = name,
          .kind = RoleKind::servers,
          .words = {"serve", "--index={index}", "--port={port}"},
          .count = count,
          .restart = restart,
          .limits = kLimits};
}

Role ranks(int count) {
  return {.words = {"train", "a.toml", "--set", "at={server}"}, .count = count, .limits = kLimits};
}

/// Units 0 and 1 are servers, unit 2 is a helper, unit 3 are two ranks.
class JobWatchTest : public testing::Test {
 protected:
  void come(size_t unit, double now) {
    const Unit& of = job_.units()[unit];
    for (int i = 0; i < of.count; ++i) {
      const int number = of.first + i;
      job_.watch(unit).came(i, "h", 100 * static_cast<long>(unit) + number, now);
      if (job_.role_of(unit).kind == RoleKind::servers)
        job_.watch(unit).announced(i, "h:" + std::to_string(4000 + unit), now);
    }
  }
  /// What step() orders, as "start 0".
  std::vector<std::string> step(double now) {
    const Step step = job_.step(now);
    lines_ = step.lines;
    std::vector<std::string> orders;
    for (const Order& order : step.orders) {
      const char* const what = order.what == Order::What::start ? "start "
                               : order.what == Order::What::end ? "end "
                                                                : "interrupt ";
      orders.push_back(what + std::to_string(order.unit));
    }
    return orders;
  }
  void begin() {
    step(0.0);
    for (const size_t unit : {0, 1}) come(unit, 1.0);
    step(1.0);
    come(2, 1.0);
    step(1.0);
    come(3, 1.0);
  }

  JobWatch job_{
      {servers("server", 2, Restart::all), servers("helper", 1, Restart::alone), ranks(2)}, {}};
  std::vector<std::string> lines_;
};

TEST_F(JobWatchTest, a_role_starts_when_those_before_it_have_told_their_addresses) {
  EXPECT_THAT(step(0.0), ElementsAre("start 0", "start 1"));
  come(0, 0.5);
  job_.watch(1).came(0, "h", 101, 0.5);
  EXPECT_THAT(step(1.0), IsEmpty());
  job_.watch(1).announced(0, "h:4001", 1.0);
  EXPECT_THAT(step(1.0), ElementsAre("start 2"));
  come(2, 1.5);
  EXPECT_THAT(step(2.0), ElementsAre("start 3"));
  EXPECT_THAT(job_.words(3), ElementsAre("train", "a.toml", "--set", "at=h:4000,h:4001"));
  EXPECT_THAT(job_.words(0), ElementsAre("serve", "--index=0", "--port=4000"));
}

TEST_F(JobWatchTest, a_lost_rank_ends_the_ranks_alone_and_they_go_on_when_they_are_gone) {
  begin();
  job_.begun();
  job_.watch(3).killed(1, SIGKILL, 2.0);
  EXPECT_THAT(step(2.0), ElementsAre("end 3"));
  EXPECT_THAT(lines_, ElementsAre("rank 1 on h (process 301) was killed by signal 9 (SIGKILL)"));
  EXPECT_THAT(step(3.0), IsEmpty());
  job_.gone(3);
  EXPECT_THAT(step(3.0), ElementsAre("start 3"));
  EXPECT_THAT(lines_,
              ElementsAre("goes on from what was saved last, with 2 ranks, restart 1 of 10"));
  EXPECT_THAT(job_.words(3),
              ElementsAre("train", "a.toml", "--set", "at=h:4000,h:4001", "--resume"));
}

TEST_F(JobWatchTest, a_lost_server_ends_what_its_rule_says_and_all_of_it_before_anything_starts) {
  begin();
  job_.watch(1).exited(0, 0, 2.0);
  EXPECT_THAT(step(2.0), ElementsAre("end 0", "end 1", "end 3"));
  EXPECT_THAT(lines_, ElementsAre("server 1 on h (process 101) ended before the job did"));
  job_.gone(0);
  job_.gone(1);
  EXPECT_THAT(step(3.0), IsEmpty());
  job_.gone(3);
  EXPECT_THAT(step(3.0), ElementsAre("start 0", "start 1"));
  EXPECT_THAT(lines_, ElementsAre("every server starts again, restart 1 of 10"));
  come(0, 3.0);
  come(1, 3.0);
  EXPECT_THAT(step(3.0), ElementsAre("start 3"));
  EXPECT_THAT(lines_, ElementsAre("starts again with 2 ranks, restart 1 of 10"));
}

TEST_F(JobWatchTest, what_restarts_alone_does_so_while_all_else_goes_on) {
  begin();
  job_.watch(2).killed(0, SIGKILL, 2.0);
  EXPECT_THAT(step(2.0), ElementsAre("end 2"));
  job_.gone(2);
  EXPECT_THAT(step(2.0), ElementsAre("start 2"));
  EXPECT_THAT(lines_, ElementsAre("helper 0 starts again, restart 1 of 10"));
  EXPECT_THAT(job_.words(2), ElementsAre("serve", "--index=0", "--port=4002"));
}

TEST_F(JobWatchTest, an_error_of_a_rank_is_believed_when_no_server_was_lost_meanwhile) {
  begin();
  for (const int rank : {0, 1}) job_.watch(3).exited(rank, 1, 2.0);
  EXPECT_THAT(step(3.9), IsEmpty());
  JobWatch other = job_;
  EXPECT_THAT(step(4.0), ElementsAre("end 0", "end 1", "end 2", "end 3"));
  other.watch(0).killed(0, SIGKILL, 3.9);
  EXPECT_EQ(other.step(4.0).lines[0], "server 0 on h (process 0) was killed by signal 9 (SIGKILL)");
  for (size_t unit = 0; unit < 4; ++unit) {
    EXPECT_FALSE(job_.outcome());
    job_.gone(unit);
  }
  EXPECT_EQ(job_.outcome()->message(), "every rank ended with status 1");
}

TEST_F(JobWatchTest, servers_end_when_the_ranks_have_ended_well) {
  begin();
  for (const int rank : {0, 1}) job_.watch(3).exited(rank, 0, 2.0);
  EXPECT_THAT(step(2.0), ElementsAre("end 0", "end 1", "end 2", "end 3"));
  EXPECT_TRUE(job_.ended_well());
  for (size_t unit = 0; unit < 4; ++unit) job_.gone(unit);
  EXPECT_TRUE(job_.outcome()->ok());
}

TEST_F(JobWatchTest, an_interrupt_is_for_ranks_and_a_second_ends_everything) {
  begin();
  job_.interrupts(1);
  EXPECT_THAT(step(2.0), ElementsAre("interrupt 3"));
  EXPECT_THAT(step(2.1), IsEmpty());
  job_.interrupts(2);
  EXPECT_THAT(step(2.2), ElementsAre("end 0", "end 1", "end 2", "end 3"));
  for (size_t unit = 0; unit < 4; ++unit) job_.gone(unit);
  EXPECT_EQ(job_.outcome()->message(), "interrupted: the job was ended");
}

TEST_F(JobWatchTest, a_job_that_was_interrupted_is_not_started_again) {
  begin();
  job_.watch(3).killed(0, SIGKILL, 2.0);
  EXPECT_THAT(step(2.0), ElementsAre("end 3"));
  job_.interrupts(1);
  EXPECT_THAT(step(2.1), ElementsAre("end 0", "end 1", "end 2"));
  for (size_t unit = 0; unit < 4; ++unit) job_.gone(unit);
  EXPECT_EQ(job_.outcome()->message(),
            "rank 0 on h (process 300) was killed by signal 9 (SIGKILL)");
}

TEST_F(JobWatchTest, a_process_that_cannot_be_started_ends_the_job) {
  step(0.0);
  job_.start_failed(0, Status::BadRequest("ssh: No such file"));
  EXPECT_THAT(step(0.0), ElementsAre("end 1"));
  job_.gone(1);
  EXPECT_EQ(job_.outcome()->message(), "ssh: No such file");
}

TEST(JobWatch, a_server_may_be_stopped_for_a_while) {
  Role patient = servers("server", 1, Restart::all);
  patient.limits.stopped_seconds = 30.0;
  JobWatch job({patient, ranks(1)}, {});
  (void)job.step(0.0);
  job.watch(0).came(0, "h", 1, 0.0);
  job.watch(0).announced(0, "h:1", 0.0);
  job.watch(0).stopped(0, SIGSTOP, 1.0);
  for (double now = 1.0; now < 31.0; now += 1.0) {
    job.watch(0).heard(0, now);
    EXPECT_THAT(job.step(now).lines, IsEmpty());
  }
  EXPECT_THAT(job.step(31.0).lines,
              ElementsAre("server 0 on h (process 1) was stopped by signal 19 (SIGSTOP)"));
}

TEST(JobWatch, a_lost_host_is_left_out_and_ranks_are_as_many_as_the_others_hold) {
  const std::vector<Host> hosts{{.name = "a", .slots = 2}, {.name = "b", .slots = 2}};
  JobWatch job({servers("server", 3, Restart::together), ranks(4)}, hosts);
  (void)job.step(0.0);
  EXPECT_EQ(job.units()[0].host, "a");
  EXPECT_EQ(job.units()[1].host, "b");
  EXPECT_EQ(job.units()[2].host, "a");
  for (const size_t unit : {0, 1, 2}) {
    job.watch(unit).came(0, job.units()[unit].host, 1, 0.0);
    job.watch(unit).announced(0, job.units()[unit].host + ":1", 0.0);
  }
  (void)job.step(0.0);
  for (const int rank : {0, 1, 2, 3}) job.watch(3).came(rank, rank < 2 ? "a" : "b.net", 1, 0.0);
  for (const size_t unit : {0, 2}) job.watch(unit).heard(0, 4.0);
  for (const int rank : {0, 1}) job.watch(3).heard(rank, 4.0);
  EXPECT_EQ(job.step(5.1).orders.size(), 4u);  // the server on b restarts the others of its role
  for (size_t unit = 0; unit < 4; ++unit) job.gone(unit);
  (void)job.step(6.0);
  for (const size_t unit : {0, 1, 2}) {
    EXPECT_EQ(job.units()[unit].host, "a");
    job.watch(unit).came(0, "a", 1, 6.0);
    job.watch(unit).announced(0, "a:1", 6.0);
  }
  EXPECT_THAT(job.step(6.0).lines,
              ElementsAre("starts again with 2 ranks instead of 4, restart 1 of 10"));
}

}  // namespace
}  // namespace recmill::server
