// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/communicator.h"

namespace recmill::cli {

/// Repetitions of a benchmark of several processes, which start them at the same time, on a quiet
/// machine.
class StartTogether {
 public:
  /// Collective. `all`: every process of the benchmark; it outlives this.
  static Result<StartTogether> make(Communicator& all);

  /// Collective. The first rank waits until other processes are quiet, or its patience is at its
  /// end, a minute for the whole benchmark; the others wait for it.
  Status start(bool counts);
  /// Foreign load before any repetition that counts, the highest, as the first rank saw it.
  double foreign_load() const { return highest_; }

 private:
  explicit StartTogether(Communicator& all) : all_(&all) {}

  Communicator* all_;
  std::vector<pid_t> own_;  // processes, on whatever host
  Stopwatch since_;
  double highest_ = 0.0;
};

}  // namespace recmill::cli
