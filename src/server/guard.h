// SPDX-License-Identifier: Apache-2.0
// The process between a launcher and a process of a job: starts that one, tells the supervisor of
// the job at once when it ends, is killed or is stopped, and ends it when the supervisor says so or
// is not heard of any more. So no process outlives its job, on whatever host.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace recmill::server {

struct GuardSetting {
  std::string role = "rank";
  int index = 0;               // of the process among those of its role
  std::string addresses;       // of the supervisor, as connect_to() takes them
  std::string token;           // by which it knows its own
  double lease_seconds = 0.0;  // without a word of the supervisor, after which the process is ended
  double grace_seconds = 0.0;  // that it has to end after SIGTERM; 0: it is killed at once
  /// The variable of the process's environment that holds a descriptor: what it writes there is
  /// told to the supervisor, a note a line.
  std::string note_variable;
};

/// Notes, each with its end of line, to be written at once.
/// The folder of the run is this job's.
inline const std::string kBegunNote = "begun\n";
/// A server answers at `address`, "HOST:PORT", or ":PORT" at the name that the job has for its
/// host.
inline std::string address_note(const std::string& address) {
  return "address " + address + "\n";
}

/// Runs the program with its arguments until the supervisor lets this process go.
Status guard_process(const GuardSetting& setting, const std::vector<std::string>& words);

}  // namespace recmill::server
