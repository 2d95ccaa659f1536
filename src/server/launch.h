// SPDX-License-Identifier: Apache-2.0
// A job of ranks over MPI, started, watched, and started again from its newest checkpoint when it
// loses a rank.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "server/job_attempt.h"

namespace recmill::server {

struct LaunchOptions {
  int ranks = 1;
  std::string hosts;     // a file as parse_hosts() reads it; empty: this host alone
  int resume_ranks = 0;  // after a loss; 0: as many as before, or as the hosts that are left hold
  int restarts = 10;     // at most
  WatchLimits limits;
  std::string mpirun = "mpirun";
  std::string remote_shell;          // as LaunchPlan has it
  std::vector<std::string> program;  // what a guard is, before the words
  std::vector<std::string> words;    // the verb and its arguments
};

struct LaunchSetting {
  Files& files;
  GuardVariables variables;
  Interrupts interrupts;
  std::function<void(const std::string&)> say;
};

/// Runs the job to its end. An error is that of the job's last start.
Status launch(const LaunchOptions& options, const LaunchSetting& setting);

}  // namespace recmill::server
