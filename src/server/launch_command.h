// SPDX-License-Identifier: Apache-2.0
// How an MPI launcher is told to start a job.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "server/host_list.h"

namespace recmill::server {

enum class MpiKind { open_mpi_4, open_mpi_5, hydra };

/// From what `mpirun --version` prints; a bad request names a launcher that is none of these.
Result<MpiKind> mpi_kind(const std::string& version);

struct LaunchPlan {
  std::string mpirun;  // path of the launcher
  MpiKind kind = MpiKind::open_mpi_4;
  std::vector<Host> hosts;  // empty: this one
  int ranks = 1;
  std::string
      remote_shell;    // called as "REMOTE_SHELL HOST COMMAND"; empty: the launcher's own, ssh
  std::string folder;  // for what the launcher leaves while the job runs
  std::vector<std::string> inherited;  // variables of the environment that ranks get
  std::vector<std::string> program;    // of each rank, with its arguments
};

/// The words that start the job. Ranks are not bound to cores, may be more than there are, and the
/// shells to other hosts stay as long as the job, so that all of it are descendants of the
/// launcher.
std::vector<std::string> launch_words(const LaunchPlan& plan);

/// The words that run a program on another host, in the folder where this process is, through a
/// shell that is called as "REMOTE_SHELL HOST COMMAND" (empty: ssh). It reads what comes on its
/// input as the value of the variable `secret`, which then nobody sees in a list of processes.
struct RemoteCommand {
  std::string remote_shell, host, folder;
  std::string secret;
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> program;
};
std::vector<std::string> remote_words(const RemoteCommand& command);

/// The words of a verb as a job that lost a rank repeats them: once training had begun its folder
/// ("train"), it goes on there instead of beginning it; with `any_ranks` it takes as many ranks as
/// there are, whatever the configuration says.
std::vector<std::string> restart_words(std::vector<std::string> words, bool had_begun,
                                       bool any_ranks);

}  // namespace recmill::server
