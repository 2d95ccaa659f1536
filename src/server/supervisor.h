// SPDX-License-Identifier: Apache-2.0
// Starts and ends the processes of a job as JobWatch says, and tells it what is heard of them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "server/job_watch.h"
#include "server/launch_command.h"
#include "server/message_line.h"
#include "server/unit_start.h"

namespace recmill::server {

/// How often people have asked to stop.
using Interrupts = std::function<int()>;

struct SupervisorSetting {
  LaunchPlan plan;                 // but for ranks, hosts and program, which JobWatch knows
  std::vector<std::string> guard;  // the words of a guard, before its options
  GuardVariables variables;
  Interrupts interrupts;
  std::function<void(const std::string&)> say;
};

class Supervisor {
 public:
  Supervisor(JobWatch watch, SupervisorSetting setting)
      : watch_(std::move(watch)), setting_(std::move(setting)), starts_(watch_.units().size()) {}

  /// To the end of the job, when nothing of it is left.
  Status run();

 private:
  void wait_for_messages(int milliseconds);
  void take_newcomers();
  void take(MessageLine line, std::vector<Json> messages);
  void hear();
  void reap();
  void beat();
  void obey(const Order& order);
  Result<UnitStart> start(size_t unit) const;
  StartPlan start_plan(size_t unit) const;
  void plan_ranks(size_t unit, StartPlan& start) const;
  void plan_server(size_t unit, StartPlan& start) const;
  bool end_units();
  std::vector<pid_t> launchers_but(size_t unit) const;

  JobWatch watch_;
  const SupervisorSetting setting_;
  std::vector<MessageListener> listener_;         // one, once it listens
  std::vector<MessageLine> newcomers_;            // that have not said who they are
  std::vector<std::optional<UnitStart>> starts_;  // by unit
  Stopwatch clock_, since_beat_;
};

}  // namespace recmill::server
