// SPDX-License-Identifier: Apache-2.0
// Runs whose rows are at servers or on a disk, and which lose a process: it is killed, or stopped,
// or wakes after the run has gone on without it. Each ends bitwise as an undisturbed run.
#include <gmock/gmock.h>

#include "cli/testing/started_run.h"

namespace recmill::cli {
namespace {

using ::testing::HasSubstr;

class LostProcesses : public StartedRun {
 protected:
  static constexpr int kLosses = 3;  // of each kind

  void SetUp() override {
    StartedRun::SetUp();
    write_run(200, 20);
  }
  /// In one of two runs so often that nearly every time is within a commit.
  static std::string commits(bool often) {
    return std::string("lookahead.commit_every=") + (often ? "1" : "7");
  }
  /// A time in the first half of a run.
  void await_time(const std::string& name, const Random& random, int round, int least = 0) {
    const auto checkpoints = least + static_cast<int>(random.below(4 - least, round, 2));
    await_checkpoint(name, checkpoint_every_ * checkpoints);
    sleep_milliseconds(static_cast<int64_t>(random.below(30, round, 0)));
  }
  static std::string lost(pid_t process, int signal) {
    return "(process " + std::to_string(process) + ") was " +
           (signal == SIGKILL ? "killed" : "stopped") + " by signal";
  }

  // Without a launcher, which would end what it finds stopped.

  /// Of so many ranks in one process, where iterations take less time than over MPI.
  void write_run_of(int ranks) { ranks == 1 ? write_run(1000, 100) : write_run(400, 40); }
  void serve_two() {
    while (addresses_.size() < 2) addresses_.push_back(serve());
  }
  Words training_at_servers(const std::string& name, const Words& settings) {
    Words all{
        "embedding.store=cached", "lookahead.home=remote",
        "lookahead.servers=[" + in_quotes(addresses_[0]) + "," + in_quotes(addresses_[1]) + "]"};
    all.insert(all.end(), settings.begin(), settings.end());
    return training(name, all);
  }
  static Words resumed(Words words) {
    words.emplace_back("--resume");
    return words;
  }
  static void stop(pid_t process) {
    const auto is_stopped = [process] {
      const std::string stat = read_proc("/proc/" + std::to_string(process) + "/stat");
      return stat.find(") T ") != std::string::npos;
    };
    while (kill(process, SIGSTOP) == 0 && !is_stopped()) sleep_milliseconds(1);
    EXPECT_TRUE(is_stopped());
  }

  Words addresses_;  // of servers_, in their order
};

}  // namespace

// Servers live through the loss of a rank. With a server all start again.
TEST_F(LostProcesses, rows_at_servers_end_as_those_of_a_quiet_run_whatever_process_is_lost) {
  constexpr uint64_t kSeed = 6;
  const int count = losses_of_each_kind(kSeed, kLosses);
  for (int round = 0; round < 4 * count; ++round) {
    const Random random(kSeed, Purpose::test, round);
    const int signal = round % 2 == 0 ? SIGKILL : SIGSTOP;
    const bool takes_server = round % 4 >= 2;
    const std::string name = "at_servers" + std::to_string(round);
    Words options{"--ranks", "2", "--servers", "2"};
    if (round / 4 % 3 == 2) options.insert(options.end(), {"--servers-disk", "rows"});
    begin(name, options, {"embedding.store=cached", commits(round / 4 % 2 == 0)});
    await_time(name, random, round);
    const auto servers = processes_of("server");
    ASSERT_EQ(servers.size(), 2u);
    const pid_t victim = strike(takes_server ? servers : ranks(), signal, random, round);
    ASSERT_GT(victim, 0);
    while (is_running() && kill(victim, 0) == 0) sleep_milliseconds(5);
    if (!takes_server) {
      EXPECT_EQ(processes_of("server"), servers);
    }
    const Outcome outcome = end();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(takes_server ? "server " : "rank "));
    EXPECT_THAT(outcome.err, HasSubstr(lost(victim, signal)));
    expect_quiet_end(name);
  }
}

TEST_F(LostProcesses, rows_on_a_disk_end_as_those_of_a_quiet_run_whatever_rank_is_lost) {
  constexpr uint64_t kSeed = 7;
  const int count = losses_of_each_kind(kSeed, kLosses);
  for (int round = 0; round < 2 * count; ++round) {
    const Random random(kSeed, Purpose::test, round);
    const int signal = round % 2 == 0 ? SIGKILL : SIGSTOP;
    const std::string name = "on_disk" + std::to_string(round);
    begin(name, {"--ranks", "2"},
          {"embedding.store=cached", "lookahead.home=disk", "lookahead.disk_path=rows/" + name,
           commits(round / 2 % 2 == 0)});
    await_time(name, random, round);
    const pid_t victim = strike(ranks(), signal, random, round);
    ASSERT_GT(victim, 0);
    const Outcome outcome = end();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(lost(victim, signal)));
    EXPECT_THAT(outcome.err, HasSubstr("goes on from what was saved last, with 2 ranks"));
    expect_quiet_end(name);
  }
}

// As where a machine hangs, its job is started elsewhere, and the machine comes back: what its
// ranks then send is of a term that is over. They have a folder of their own, which is locked.
TEST_F(LostProcesses, ranks_that_wake_after_their_run_was_started_again_change_nothing) {
  constexpr uint64_t kSeed = 8;
  const int count = losses_of_each_kind(kSeed, kLosses);
  serve_two();
  for (int round = 0; round < count; ++round) {  // of one rank, of two, of two processes
    const Random random(kSeed, Purpose::test, round);
    const std::string name = "first" + std::to_string(round);
    const std::string again = "again" + std::to_string(round);
    const bool by_mpi = round % 3 == 2;
    if (by_mpi) launcher_ = {RECMILL_LAUNCHER, "-n", "2"};
    Words settings{commits(round % 2 == 0)};
    if (!by_mpi) settings.push_back("train.ranks=" + std::to_string(1 + round % 3));
    by_mpi ? write_run(200, 20) : write_run_of(1 + round % 3);
    err_ = "first";
    std::vector<pid_t> processes;
    for (int tries = 0; tries < 5; ++tries) {
      begin_by(name, training_at_servers(name, settings));
      await_time(name, random, round);
      while (!posix_files().exists(path("runs/" + name + "/home.json")) && is_running())
        sleep_milliseconds(5);  // by which the next start knows the run
      processes = ranks();
      if (processes.size() == (by_mpi ? 2u : 1u)) break;
      EXPECT_EQ(end().status, 0);  // a busy machine has let it end by then
      std::filesystem::remove_all(path("runs/" + name));
    }
    ASSERT_EQ(processes.size(), by_mpi ? 2u : 1u);
    // Of two processes one sleeps, and the other waits for it.
    const pid_t sleeper = processes[random.below(processes.size(), round, 1)];
    stop(sleeper);
    for (const pid_t process : processes) stop(process);  // while its folder is copied
    std::filesystem::copy(path("runs/" + name), path("runs/" + again),
                          std::filesystem::copy_options::recursive);
    for (const pid_t process : processes)
      if (process != sleeper) kill(process, SIGCONT);
    other_ = std::exchange(child_, -1);
    const std::string saved = newest_checkpoint(again);
    err_ = "again";
    begin_by(again, resumed(training_at_servers(again, settings)));
    while (newest_checkpoint(again) == saved && is_running()) sleep_milliseconds(5);
    sleep_milliseconds(static_cast<int64_t>(random.below(30, round, 3)));
    kill(sleeper, SIGCONT);
    const Outcome outcome = end();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    err_ = "first";
    const Outcome first = end_of(other_);
    launcher_.clear();
    EXPECT_NE(first.status, 0);
    EXPECT_THAT(first.err, HasSubstr("the run was started again"));
    if (!by_mpi) {  // whose launcher says something too
      EXPECT_EQ(std::ranges::count(first.err, '\n'), 1) << first.err;
    }
    expect_quiet_end(again);
  }
}

TEST_F(LostProcesses, a_server_that_sleeps_for_a_while_is_waited_for) {
  constexpr uint64_t kSeed = 9;
  const int count = losses_of_each_kind(kSeed, kLosses);
  serve_two();
  for (int round = 0; round < count; ++round) {
    const Random random(kSeed, Purpose::test, round);
    const std::string name = "waits" + std::to_string(round);
    const int ranks = 1 + round % 2;
    write_run_of(ranks);
    begin_by(name, training_at_servers(name, {commits(round / 2 % 2 == 0),
                                              "train.ranks=" + std::to_string(ranks)}));
    await_time(name, random, round);
    const pid_t sleeper = servers_[random.below(servers_.size(), round, 1)];
    stop(sleeper);
    sleep_milliseconds(500 + static_cast<int64_t>(random.below(1000, round, 3)));
    EXPECT_TRUE(is_running());
    kill(sleeper, SIGCONT);
    const Outcome outcome = end();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    expect_quiet_end(name);
  }
}

// The next start finds it awake, or another one in its place, and it wakes beside that.
TEST_F(LostProcesses, a_server_that_sleeps_too_long_ends_its_run_which_goes_on_when_started_again) {
  constexpr uint64_t kSeed = 10;
  const int count = losses_of_each_kind(kSeed, kLosses);
  write_run_of(1);
  for (int round = 0; round < count; ++round) {
    const Random random(kSeed, Purpose::test, round);
    const bool is_replaced = round % 2 == 0;
    const std::string name = "late" + std::to_string(round);
    const std::string often = commits(round / 2 % 2 == 0);
    serve_two();
    begin_by(name, training_at_servers(name, {often, "lookahead.deadline=2"}));
    await_time(name, random, round, /*least=*/1);
    const size_t asleep = random.below(2, round, 1);
    const pid_t sleeper = servers_[asleep];
    const std::string of_sleeper =
        "server " + std::to_string(asleep) + " (" + addresses_[asleep] + ") has not answered for ";
    stop(sleeper);
    const Outcome late = end();
    EXPECT_EQ(late.status, 1);
    EXPECT_THAT(late.err, HasSubstr(of_sleeper));
    EXPECT_EQ(std::ranges::count(late.err, '\n'), 1) << late.err;
    if (is_replaced) {
      addresses_[asleep] = serve();
    } else {
      kill(sleeper, SIGCONT);
    }
    const std::string saved = newest_checkpoint(name);
    begin_by(name, resumed(training_at_servers(name, {often})));
    while (newest_checkpoint(name) == saved && is_running()) sleep_milliseconds(5);
    kill(sleeper, SIGCONT);
    const Outcome outcome = end();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    expect_quiet_end(name);
    if (!is_replaced) continue;
    end_servers();
    addresses_.clear();
  }
}

}  // namespace recmill::cli
