// SPDX-License-Identifier: Apache-2.0
// `recmill launch` as a user meets it. RECMILL_LAUNCHER is the path of an MPI launcher; the
// variable RECMILL_LOSSES how many ranks are killed, and how many are stopped.
#include <gmock/gmock.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "base/random.h"
#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

void sleep_milliseconds(int64_t milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

std::string read_proc(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Processes below `root`, with the words that they were started by.
std::map<pid_t, std::string> processes_below(pid_t root) {
  std::map<pid_t, pid_t> parents;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process <= 0) continue;
    const auto stat = read_proc(entry.path().string() + "/stat");
    const size_t end = stat.rfind(')');
    if (end != std::string::npos)
      parents[process] = std::atoi(stat.c_str() + end + 4);  // ") S PARENT"
  }
  std::map<pid_t, std::string> found;
  for (const auto& [process, parent] : parents) {
    pid_t at = process;
    while (at != root && parents.contains(at)) at = parents[at];
    if (at != root) continue;
    std::string words = read_proc("/proc/" + std::to_string(process) + "/cmdline");
    std::ranges::replace(words, '\0', ' ');
    found[process] = words;
  }
  return found;
}

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

class LaunchVerb : public Program {
 protected:
  static constexpr int kRanks = 4, kIterations = 1000, kEvery = 50;

  static void SetUpTestSuite() { kept_ = std::make_unique<TemporaryFolder>(); }
  static void TearDownTestSuite() { kept_.reset(); }
  void SetUp() override {
    // What a killed launcher leaves there goes with the test's folder.
    if (const char* const before = std::getenv("TMPDIR")) temporary_ = before;
    setenv("TMPDIR", folder_.path().c_str(), 1);
    write("a.toml", config(kDlrm, "mapping = 'dictionary'\nout_of_range = 'clamp'",
                           "epochs = 100\niterations = " + std::to_string(kIterations) +
                               "\n[train.checkpoint]\nevery = " + std::to_string(kEvery)));
  }
  void TearDown() override {
    if (temporary_) {
      setenv("TMPDIR", temporary_->c_str(), 1);
    } else {
      unsetenv("TMPDIR");
    }
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }

  static Words launch(const Words& options, const Words& words) {
    Words all{"launch"};
    all.insert(all.end(), options.begin(), options.end());
    if (std::ranges::find(options, "--mpirun") == options.end())
      all.insert(all.end(), {"--mpirun", RECMILL_LAUNCHER});
    all.push_back("--");
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  static Words training(const std::string& name) {
    return {"train", "a.toml", "--quiet", "--set", "name=" + name};
  }

  /// Starts a job and waits until its training has begun.
  void begin(const std::string& name, const Words& options = {"--ranks", std::to_string(kRanks)},
             const Words& settings = {}) {
    Words words = training(name);
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    child_ = start(launch(options, words));
    while (!posix_files().exists(path("runs/" + name + "/config.toml")) && is_running())
      sleep_milliseconds(5);
  }
  /// Waits for a checkpoint after at least so many iterations.
  void await_checkpoint(const std::string& name, int iterations) {
    const auto newest = [&] {
      const std::string folder = newest_checkpoint(name);
      return folder.empty() ? 0 : std::atoi(folder.substr(folder.rfind('-') + 1).c_str());
    };
    while (newest() < iterations && is_running()) sleep_milliseconds(5);
  }
  /// The end that all runs of this configuration have, which is made once.
  std::string quiet() {
    const std::string kept = kept_->path() + "/quiet";
    if (!posix_files().exists(kept)) {
      const Outcome outcome = run(training("quiet"));
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      std::filesystem::copy(path("runs/quiet"), kept, std::filesystem::copy_options::recursive);
    }
    return kept;
  }
  bool is_running() {
    siginfo_t info{};
    return waitid(P_PID, child_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  }
  Outcome end() {
    int status = 0;
    waitpid(std::exchange(child_, -1), &status, 0);
    Outcome outcome;
    if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
    outcome.out = *read_text(posix_files(), path("out"));
    outcome.err = *read_text(posix_files(), path("err"));
    return outcome;
  }
  std::vector<pid_t> processes_of(const std::string& verb) {
    std::vector<pid_t> found;
    for (const auto& [process, words] : processes_below(child_)) {
      if (words.starts_with(RECMILL_PROGRAM " " + verb + " ")) found.push_back(process);
    }
    return found;
  }
  std::vector<pid_t> ranks() { return processes_of("train"); }
  /// Those of launchers, in this test's TMPDIR.
  int64_t session_folders() {
    return std::ranges::count_if(*posix_files().list(folder_.path()), [](const std::string& name) {
      return name.starts_with("recmill-launch-");
    });
  }
  void expect_quiet_end(const std::string& name) {
    const Outcome compared = run({"verify", "--checkpoints", quiet(), "runs/" + name});
    EXPECT_EQ(compared.status, 0) << compared.err;
    EXPECT_FALSE(posix_files().exists(path("runs/" + name + "/lock")));
  }
  void refuse(const Words& options, const Words& words, const std::string& message) {
    const Outcome outcome = run(launch(options, words));
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }

  static inline std::unique_ptr<TemporaryFolder> kept_;  // what tests share
  pid_t child_ = -1;
  std::optional<std::string> temporary_;  // TMPDIR of the others
};

/// One, or as many as RECMILL_LOSSES says.
int losses_of_each_kind(uint64_t seed) {
  const char* const losses = std::getenv("RECMILL_LOSSES");
  const int count = losses != nullptr ? std::atoi(losses) : 1;
  std::printf("seed %lu, %d losses of each kind\n", seed, count);
  (void)std::fflush(stdout);  // not once more by each child
  return count;
}

/// Takes a rank that `random` chooses at a time that it chooses.
pid_t strike(const std::vector<pid_t>& ranks, int signal, const Random& random, int round) {
  if (ranks.empty()) return -1;
  const pid_t victim = ranks[random.below(ranks.size(), round, 1)];
  return kill(victim, signal) == 0 ? victim : -1;
}

}  // namespace

TEST_F(LaunchVerb, a_rank_that_is_killed_or_stopped_is_named_and_the_end_is_that_of_a_quiet_run) {
  constexpr uint64_t kSeed = 5;
  const int count = losses_of_each_kind(kSeed);
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

// Servers live through the loss of a rank. With a server all start again.
TEST_F(LaunchVerb, rows_at_servers_end_as_those_of_a_quiet_run_whatever_process_is_lost) {
  constexpr uint64_t kSeed = 6;
  const int count = losses_of_each_kind(kSeed);
  for (int round = 0; round < 4 * count; ++round) {
    const Random random(kSeed, Purpose::test, round);
    const int signal = round % 2 == 0 ? SIGKILL : SIGSTOP;
    const bool takes_server = round % 4 >= 2;
    const std::string name = "at_servers" + std::to_string(round);
    begin(name, {"--ranks", "2", "--servers", "2"},
          {"embedding.store=cached", "lookahead.commit_every=7"});
    await_checkpoint(name, kEvery * static_cast<int>(random.below(6, round, 2)));
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
    EXPECT_THAT(outcome.err, HasSubstr("(process " + std::to_string(victim) + ") was " +
                                       (signal == SIGKILL ? "killed" : "stopped") + " by signal"));
    expect_quiet_end(name);
  }
}

TEST_F(LaunchVerb, rows_on_a_disk_end_as_those_of_a_quiet_run_whatever_rank_is_lost) {
  constexpr uint64_t kSeed = 7;
  const int count = losses_of_each_kind(kSeed);
  for (int round = 0; round < 2 * count; ++round) {
    const Random random(kSeed, Purpose::test, round);
    const int signal = round % 2 == 0 ? SIGKILL : SIGSTOP;
    const std::string name = "on_disk" + std::to_string(round);
    begin(name, {"--ranks", "2"},
          {"embedding.store=cached", "lookahead.home=disk", "lookahead.disk_path=rows/" + name,
           "lookahead.commit_every=7"});
    await_checkpoint(name, kEvery * static_cast<int>(random.below(6, round, 2)));
    sleep_milliseconds(static_cast<int64_t>(random.below(50, round, 0)));
    const pid_t victim = strike(ranks(), signal, random, round);
    ASSERT_GT(victim, 0);
    const Outcome outcome = end();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("goes on from what was saved last, with 2 ranks"));
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
