// SPDX-License-Identifier: Apache-2.0
// The program as a user meets it, in a folder of its own. RECMILL_PROGRAM is its path.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json/json.h"
#include "base/temporary_folder.h"

namespace recmill::cli {

struct Outcome {
  int status = -1;  // exit status; -1: ended by a signal
  std::string out, err;
  int64_t peak = 0;  // bytes that it held in memory at most
};

// The program in a folder of its own.
class Program : public testing::Test {
 protected:
  pid_t start(const std::vector<std::string>& arguments) {
    const pid_t child = fork();
    if (child != 0) return child;
    RECMILL_CHECK(chdir(folder_.path().c_str()) == 0);
    RECMILL_CHECK(freopen(out_.c_str(), "w", stdout) != nullptr);
    RECMILL_CHECK(freopen(err_.c_str(), "w", stderr) != nullptr);
    RECMILL_CHECK(where_.empty() || chdir(path(where_).c_str()) == 0);
    if (address_space_ > 0) {
      const rlimit limit{static_cast<rlim_t>(address_space_), static_cast<rlim_t>(address_space_)};
      RECMILL_CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    }
    std::vector<std::string> words = launcher_;
    words.push_back(RECMILL_PROGRAM);
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }

  Outcome run(const std::vector<std::string>& arguments) {
    const pid_t child = start(arguments);
    int status = 0;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    Outcome outcome;
    outcome.peak = int64_t{usage.ru_maxrss} * 1024;
    if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
    if (out_ == "out") outcome.out = *read_text(posix_files(), path("out"));
    outcome.err = *read_text(posix_files(), path(err_));
    return outcome;
  }

  Json run_json(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const Json result = Json::parse(outcome.out, nullptr, false);
    return result.is_object() ? result : Json::object();
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_atomically(posix_files(), path(name), text).ok());
  }
  /// The folder of a run's newest checkpoint; empty: there is none.
  std::string newest_checkpoint(const std::string& run_name) {
    const std::string checkpoints = "runs/" + run_name + "/checkpoints";
    auto names = posix_files().list(path(checkpoints));
    if (!names.ok()) return "";
    std::erase_if(*names, [](const std::string& name) { return name.ends_with(".tmp"); });
    return names->empty() ? "" : checkpoints + "/" + names->back();
  }

  TemporaryFolder folder_;
  std::vector<std::string> launcher_;  // words before the program
  std::string where_;                  // folder in that folder; empty: that one
  std::string out_ = "out";            // file that is the program's stdout
  std::string err_ = "err";            // and its stderr
  int64_t address_space_ = 0;          // bytes that a program may map; 0: as many as there are
};

/// What a shell's command says, to whomever.
inline std::string said_by(const std::string& command) {
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  RECMILL_CHECK(pipe != nullptr);
  std::string said;
  for (int c; (c = fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  pclose(pipe);
  return said;
}

// A small run over generated rows; the arguments are lines of [model], [embedding] and [train].
inline std::string config(const std::string& model, const std::string& embedding,
                          const std::string& train) {
  return "[data]\nformat = 'synthetic'\n[data.synthetic]\nrows = 6000\neval_rows = 1000\n"
         "cardinality_scale = 0.001\n"
         "[embedding]\nrows = 500\ndim = 8\n" +
         embedding + "\n[model]\n" + model + "\n[train]\nslices = 8\nbatch_size = 128\n" + train +
         "\n";
}
inline const char* const kDlrm = "kind = 'dlrm'\nbottom = [16, 8]\ntop = [16, 1]";

}  // namespace recmill::cli
