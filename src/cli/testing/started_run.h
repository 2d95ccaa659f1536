// SPDX-License-Identifier: Apache-2.0
// A run that a test starts, watches and harms; its end is compared with that of an undisturbed one.
// RECMILL_LAUNCHER is the path of an MPI launcher; the variable RECMILL_LOSSES how many losses of
// each kind there are.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cli/testing/serving_program.h"

namespace recmill::cli {

inline std::string read_proc(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Processes below `root`, with the words that they were started by.
inline std::map<pid_t, std::string> processes_below(pid_t root) {
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

class StartedRun : public ServingProgram {
 protected:
  static void SetUpTestSuite() { kept_ = std::make_unique<TemporaryFolder>(); }
  static void TearDownTestSuite() { kept_.reset(); }
  void SetUp() override {
    // What a killed launcher leaves there goes with the test's folder.
    if (const char* const before = std::getenv("TMPDIR")) temporary_ = before;
    setenv("TMPDIR", folder_.path().c_str(), 1);
  }
  void TearDown() override {
    if (temporary_) {
      setenv("TMPDIR", temporary_->c_str(), 1);
    } else {
      unsetenv("TMPDIR");
    }
    for (const pid_t child : {child_, other_}) {
      if (child <= 0) continue;  // it has ended
      for (const auto& [process, words] : processes_below(child)) kill(process, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    end_servers();
  }

  /// The configuration a.toml of all runs.
  void write_run(int iterations, int checkpoint_every) {
    iterations_ = iterations;
    checkpoint_every_ = checkpoint_every;
    write("a.toml",
          config(kDlrm, "mapping = 'dictionary'\nout_of_range = 'clamp'",
                 "epochs = 1000\niterations = " + std::to_string(iterations) +
                     "\n[train.checkpoint]\nevery = " + std::to_string(checkpoint_every)));
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
  static Words training(const std::string& name, const Words& settings = {}) {
    Words words{"train", "a.toml", "--quiet", "--set", "name=" + name};
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    return words;
  }

  /// Starts a job and waits until its training has begun.
  void begin(const std::string& name, const Words& options, const Words& settings = {}) {
    begin_by(name, launch(options, training(name, settings)));
  }
  void begin_by(const std::string& name, const Words& words) {
    child_ = start(words);
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
  /// The end that all runs of this configuration have; it is made once.
  std::string quiet() {
    const std::string name = "quiet" + std::to_string(iterations_);
    const std::string kept = kept_->path() + "/" + name;
    if (!posix_files().exists(kept)) {
      const Outcome outcome = run(training(name));
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      std::filesystem::copy(path("runs/" + name), kept, std::filesystem::copy_options::recursive);
    }
    return kept;
  }
  bool is_running() {
    siginfo_t info{};
    return waitid(P_PID, child_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  }
  Outcome end() { return end_of(child_); }
  Outcome end_of(pid_t& child) {
    int status = 0;
    waitpid(std::exchange(child, -1), &status, 0);
    Outcome outcome;
    if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
    outcome.out = *read_text(posix_files(), path(out_));
    outcome.err = *read_text(posix_files(), path(err_));
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
  void expect_quiet_end(const std::string& name) {
    const Outcome compared = run({"verify", "--checkpoints", quiet(), "runs/" + name});
    EXPECT_EQ(compared.status, 0) << name << ": " << compared.err;
    EXPECT_FALSE(posix_files().exists(path("runs/" + name + "/lock")));
  }

  int iterations_ = 0, checkpoint_every_ = 0;
  static inline std::unique_ptr<TemporaryFolder> kept_;  // what tests share
  pid_t child_ = -1, other_ = -1;         // of which one is watched, and another may run beside it
  std::optional<std::string> temporary_;  // TMPDIR of the others
};

/// As many as RECMILL_LOSSES says, or `count`.
inline int losses_of_each_kind(uint64_t seed, int count) {
  if (const char* const losses = std::getenv("RECMILL_LOSSES")) count = std::atoi(losses);
  std::printf("seed %lu, %d losses of each kind\n", seed, count);
  (void)std::fflush(stdout);  // not once more by each child
  return count;
}

/// Takes a process that `random` chooses at a time that it chooses.
inline pid_t strike(const std::vector<pid_t>& processes, int signal, const Random& random,
                    int round) {
  if (processes.empty()) return -1;
  const pid_t victim = processes[random.below(processes.size(), round, 1)];
  return kill(victim, signal) == 0 ? victim : -1;
}

}  // namespace recmill::cli
