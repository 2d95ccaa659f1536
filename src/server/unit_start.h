// SPDX-License-Identifier: Apache-2.0
// One start of a unit, and its end with all that it has started. Obeys; what is to be done is
// decided by JobWatch.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/status.h"
#include "server/child_process.h"
#include "server/message_line.h"
#include "server/role.h"
#include "server/unit_watch.h"

namespace recmill::server {

/// The variables by which a guard finds its supervisor.
struct GuardVariables {
  std::string addresses, token, lease_seconds;
};

/// How a unit's launcher is started.
struct StartPlan {
  std::vector<std::string> words;
  StartOptions options;
  std::string token;         // by which its guards say that they are of this start
  std::string name;          // of the launcher, as messages have it
  std::string host;          // as others call that of a server
  int first = 0, count = 1;  // of its processes
  double lease_seconds = 0;  // in which a guard that cannot be reached has surely ended
  double grace_seconds = 0;  // that its processes have to end
};

class UnitStart {
 public:
  static Result<UnitStart> begin(StartPlan plan);

  const std::string& token() const { return plan_.token; }
  /// Takes the line of one of its guards, with what that has said: first, who it is.
  void take(MessageLine line, std::vector<Json> messages, UnitWatch& watch, double now);
  /// Whether a note of them said that the run has begun.
  bool hear(UnitWatch& watch, double now);
  void append_descriptors(std::vector<int>& to) const;
  void tell(const char* what);
  /// To those that come later too.
  void interrupt();

  /// Its launcher's process; none: it has ended.
  std::optional<pid_t> launcher() const;
  void launcher_ended(int status);
  const std::string& launcher_end() const { return launcher_end_; }

  void end(double now);
  /// One step towards it; whether nothing of it is left. `others` are launchers whose processes
  /// are none of its. `patient`: the launcher may end by itself.
  bool is_gone(double now, const std::vector<pid_t>& others, bool patient);

 private:
  struct Guard {
    MessageLine line;
    int index = 0;              // in the unit
    std::vector<Json> unheard;  // messages, come together with the first
  };
  explicit UnitStart(StartPlan plan) : plan_(std::move(plan)) {}
  bool hear_message(const Guard& guard, const Json& message, UnitWatch& watch, double now) const;
  bool processes_are_gone(double leaving, const std::vector<pid_t>& others, bool patient);

  StartPlan plan_;
  pid_t launcher_ = -1;
  std::string launcher_end_;  // empty: it runs
  std::vector<Guard> guards_;
  bool interrupted_ = false;
  bool processes_gone_ = false;
  double end_ = 0.0;
};

}  // namespace recmill::server
