// SPDX-License-Identifier: Apache-2.0
// One start of a job: watched until it ends or loses a rank, then ended with all that it started.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "server/job_watch.h"
#include "server/launch_command.h"
#include "server/message_line.h"

namespace recmill::server {

/// The variables by which a guard finds its supervisor.
struct GuardVariables {
  std::string addresses, token, lease_seconds;
};

/// How often people have asked to stop: at once 1 to finish the iteration and save, 2 to end.
using Interrupts = std::function<int()>;

class JobAttempt {
 public:
  JobAttempt(LaunchPlan plan, GuardVariables variables, WatchLimits limits, Interrupts interrupts)
      : plan_(std::move(plan)),
        variables_(std::move(variables)),
        limits_(limits),
        interrupts_(std::move(interrupts)) {}

  /// Starts the job and watches it until there is a verdict other than "runs".
  Result<Verdict> run();
  /// Ends what runs still, and waits until it is gone; of a rank that cannot be reached, until its
  /// guard has ended it for want of word from here.
  void end();

  /// Whether training's folder is this job's.
  bool has_begun() const { return has_begun_; }
  int interrupts() const { return interrupted_; }

 private:
  struct Guard {
    MessageLine line;
    int rank = -1;  // until it has said who it is
  };

  Status start();
  void wait_for_messages(int milliseconds);
  void take_new();
  void hear(Guard& guard, JobWatch& watch);
  void hear_message(Guard& guard, const Json& message, JobWatch& watch);
  void pass_interrupts();
  void tell_all(const char* what);
  void beat();
  void reap();
  bool end_processes(double leaving);

  const LaunchPlan plan_;
  const GuardVariables variables_;
  const WatchLimits limits_;
  const Interrupts interrupts_;
  std::vector<MessageListener> listener_;  // one, once it listens
  std::string token_;
  std::vector<Guard> guards_;
  pid_t launcher_ = -1;
  std::string launcher_end_;  // empty: it runs
  bool has_begun_ = false;
  int interrupted_ = 0;
  JobState state_ = JobState::runs;
  Stopwatch watch_, since_beat_;
};

}  // namespace recmill::server
