// SPDX-License-Identifier: Apache-2.0
// A job of ranks over MPI, with servers beside them where it has some: started, watched, and
// started again from its newest checkpoint when it loses a rank.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "server/role.h"
#include "server/supervisor.h"

namespace recmill::server {

struct LaunchOptions {
  std::vector<Role> roles;  // one of them of ranks
  std::string hosts;        // a file as parse_hosts() reads it; empty: this host alone
  std::string mpirun = "mpirun";
  std::string remote_shell;        // as LaunchPlan has it
  std::vector<std::string> guard;  // the words of a guard, before its options
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
