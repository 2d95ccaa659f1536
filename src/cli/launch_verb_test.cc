// SPDX-License-Identifier: Apache-2.0
// `recmill launch` as a user meets it.
#include <gmock/gmock.h>

#include <set>
#include <sstream>

#include "cli/testing/started_run.h"

namespace recmill::cli {
namespace {

using ::testing::HasSubstr;

/// Files in /dev/shm that a process has mapped under their names.
std::set<std::string> shared_files_of(pid_t process) {
  std::istringstream maps(read_proc("/proc/" + std::to_string(process) + "/maps"));
  std::set<std::string> files;
  for (std::string line; std::getline(maps, line);) {
    const size_t begin = line.find("/dev/shm/");
    if (begin != std::string::npos && !line.ends_with("(deleted)"))
      files.insert(line.substr(begin));
  }
  return files;
}

class LaunchVerb : public StartedRun {
 protected:
  static constexpr int kRanks = 4, kIterations = 1000, kEvery = 50;

  void SetUp() override {
    StartedRun::SetUp();
    write_run(kIterations, kEvery);
  }
  /// Those of launchers, in this test's TMPDIR.
  int64_t session_folders() {
    return std::ranges::count_if(*posix_files().list(folder_.path()), [](const std::string& name) {
      return name.starts_with("recmill-launch-");
    });
  }
  void refuse(const Words& options, const Words& words, const std::string& message) {
    const Outcome outcome = run(launch(options, words));
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
};

}  // namespace

TEST_F(LaunchVerb, a_rank_that_is_killed_or_stopped_is_named_and_the_end_is_that_of_a_quiet_run) {
  constexpr uint64_t kSeed = 5;
  const int count = losses_of_each_kind(kSeed, 1);
  for (int round = 0; round < 2 * count; ++round) {
    const Random random(kSeed, Purpose::test, round);
    const int signal = round % 2 == 0 ? SIGKILL : SIGSTOP;
    const std::string name = "run" + std::to_string(round);
    Words options{"--ranks", std::to_string(kRanks)};
    if (round % 4 == 0 || round % 4 == 3) options.insert(options.end(), {"--resume-ranks", "2"});
    begin(name, options);
    await_checkpoint(name, kEvery * static_cast<int>(random.below(6, round, 2)));
    sleep_milliseconds(static_cast<int64_t>(random.below(50, round, 0)));
    const pid_t victim = strike(ranks(), signal, random, round);
    ASSERT_GT(victim, 0);
    const Outcome outcome = end();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("(process " + std::to_string(victim) + ") was " +
                                       (signal == SIGKILL ? "killed" : "stopped") + " by signal"));
    EXPECT_THAT(outcome.err, HasSubstr("goes on from what was saved last, with "));
    EXPECT_EQ(kill(victim, 0), -1);
    expect_quiet_end(name);
  }
}

TEST_F(LaunchVerb, an_interrupt_saves_and_the_run_goes_on_from_there) {
  begin("a", {"--ranks", "2"});
  kill(child_, SIGINT);
  const Outcome outcome = end();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("interrupted"));
  Words again = training("a");
  again.emplace_back("--resume");
  const Outcome resumed = run(launch({"--ranks", "2"}, again));
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  expect_quiet_end("a");
}

TEST_F(LaunchVerb, nothing_outlives_a_launcher_that_is_killed_but_a_folder_that_the_next_removes) {
  begin("a", {"--ranks", std::to_string(kRanks)},
        {"train.iterations=1000000", "train.epochs=1000000"});
  const auto below = processes_below(child_);
  EXPECT_GT(below.size(), 2u * kRanks);  // each with its guard
  sleep_milliseconds(1000);              // a guard looks twice
  std::set<std::string> segments;
  for (const pid_t rank : ranks()) segments.merge(shared_files_of(rank));
  EXPECT_FALSE(segments.empty());
  kill(child_, SIGKILL);
  waitpid(std::exchange(child_, -1), nullptr, 0);
  for (const auto& [process, words] : below) {
    for (int look = 0; look < 2000 && kill(process, 0) == 0; ++look) sleep_milliseconds(10);
    EXPECT_EQ(kill(process, 0), -1) << words;
  }
  for (const std::string& segment : segments)
    EXPECT_FALSE(posix_files().exists(segment)) << segment;
  EXPECT_EQ(session_folders(), 1);
  refuse({"--ranks", "9"}, training("b"), "train.ranks: 9 is more than train.slices, which is 8");
  EXPECT_EQ(session_folders(), 0);
}

TEST_F(LaunchVerb, a_second_job_of_the_same_name_is_refused_and_the_first_goes_on) {
  begin("a", {"--ranks", "2"});
  const Outcome second = run({"train", "a.toml", "--set", "name=a", "--resume"});
  EXPECT_EQ(second.status, 2);
  EXPECT_THAT(second.err, HasSubstr("runs/a: another job is at this run"));
  EXPECT_EQ(end().status, 0);
}

TEST_F(LaunchVerb, refuses_what_cannot_be_with_its_reason) {
  write("unknown", "no-such-host.invalid slots=2\n");
  write("small", "localhost slots=2\n");
  refuse({"--ranks", "0"}, training("a"), "--ranks: must be at least 1");
  refuse({"--ranks", "2", "--hosts", "unknown"}, training("a"),
         "unknown:1: host 'no-such-host.invalid' is unknown");
  refuse({"--ranks", "3", "--hosts", "small"}, training("a"), "--ranks 3: small has slots for 2");
  refuse({"--ranks", "2", "--mpirun", "/no/mpirun"}, training("a"), "/no/mpirun: cannot be run");
  refuse({"--ranks", "2", "--mpirun", "/bin/true"}, training("a"),
         "/bin/true: is not a launcher of Open MPI or MPICH");
  refuse({"--ranks", "2"}, {"trian", "a.toml"},
         "launch: 'trian' is not a verb; did you mean 'train'?; what follows -- is");
  Words slices = training("a");
  slices.insert(slices.end(), {"--set", "train.slices=1"});
  refuse({"--ranks", "2"}, slices, "train.ranks: 2 is more than train.slices, which is 1");
  refuse({"--ranks", "2", "--servers", "1"}, training("a"),
         "lookahead.home: \"remote\" needs embedding.store = \"cached\"");
  refuse({"--ranks", "2", "--servers", "1", "--hosts", "small"}, training("a"),
         "--servers: on other hosts they are reached without a token or TLS; allow that");
  EXPECT_FALSE(posix_files().exists(path("runs/a")));
}

}  // namespace recmill::cli
