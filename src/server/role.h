// SPDX-License-Identifier: Apache-2.0
// A job is a list of roles: programs that run beside each other, each with its rule of restart.
#pragma once

#include <string>
#include <vector>

namespace recmill::server {

enum class RoleKind {
  ranks,    // started together by the MPI launcher; the job is done when all have ended well
  servers,  // each started by itself, on the hosts in turn; ready when it has told its address.
            // They run until the ranks have ended, and are then asked to end by SIGTERM.
};

/// What is started again when a process of a role is lost.
enum class Restart {
  alone,     // it alone: the others do without it meanwhile. Ranks come together all the same.
  together,  // all processes of its role; those of other roles live on
  all,       // all processes of the job, but for roles that restart alone
};

struct WatchLimits {
  double start_seconds = 60.0;   // in which all processes come, and servers tell their addresses
  double silence_seconds = 5.0;  // without a sign of life after which a process is lost
  double stopped_seconds = 0.0;  // after which a process that a signal has stopped is lost
  /// After a process that ended with an error: how long others may take to do so too. One that
  /// was killed is the cause then, whoever was heard of first.
  double settle_seconds = 2.0;
};

struct Role {
  std::string name = "rank";  // as messages have it, before the number of a process
  RoleKind kind = RoleKind::ranks;
  /// The program's arguments. {NAME} of a role of servers further up is the addresses of its
  /// processes, with commas between, and {"NAME"} the same with each in quotes. In a server's own, "{index}" is its number and "{port}" the
  /// port that it told when it last ran on this host, else 0.
  std::vector<std::string> words = {};
  int count = 1;         // of processes
  int resume_count = 0;  // of ranks after a loss; 0: as many as before, or as the hosts left hold
  Restart restart = Restart::together;
  int restarts = 10;           // after losses of this role's processes, at most
  double grace_seconds = 0.0;  // from SIGTERM to SIGKILL; 0: SIGKILL at once
  WatchLimits limits = {};
};

}  // namespace recmill::server
