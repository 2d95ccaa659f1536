// SPDX-License-Identifier: Apache-2.0
// A program started by this one, and everything that it starts.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace recmill::server {

struct StartOptions {
  std::vector<std::pair<std::string, std::string>> variables;  // besides this process's environment
  bool dies_with_parent = false;  // by SIGKILL, when the thread that started it ends
  std::string input = {};         // what it reads on stdin, at most a page
};

/// Starts words[0], found on PATH, in a process group of its own, with no signal blocked. Fails
/// where it cannot be executed.
Result<pid_t> start_process(const std::vector<std::string>& words,
                            const StartOptions& options = {});

/// What a program prints on stdout; fails with what it says where it cannot be run.
Result<std::string> output_of(const std::vector<std::string>& words);

/// From now on processes below this one whose parents end are this one's children.
void adopt_orphans();

/// All processes below this one, whatever group they are in, stopped ones too; not those of
/// `others` and what is below them.
std::vector<pid_t> descendants(const std::vector<pid_t>& others = {});

}  // namespace recmill::server
