// SPDX-License-Identifier: Apache-2.0
// The process that stands between an MPI launcher and a rank: starts the rank, tells the supervisor
// of the job at once when it ends, is killed or is stopped, and ends it when the supervisor says so
// or is not heard of any more. So no rank outlives its job, on whatever host.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace recmill::server {

struct GuardSetting {
  int rank = 0;
  std::string addresses;       // of the supervisor, as connect_to() takes them
  std::string token;           // by which it knows its own
  double lease_seconds = 0.0;  // without a word of the supervisor, after which the rank is ended
  /// The variable of the rank's environment that holds a descriptor: what it writes there are
  /// messages to the supervisor, one byte each (RankNote).
  std::string note_variable;
};

/// What a rank may tell of itself.
enum class RankNote : char { has_begun = 'b' };

/// Runs the program with its arguments as the rank, until the supervisor lets this process go.
Status guard_rank(const GuardSetting& setting, const std::vector<std::string>& words);

}  // namespace recmill::server
