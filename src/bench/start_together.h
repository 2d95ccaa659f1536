// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "comm/world.h"

namespace recmill::bench {

/// The processes that a benchmark of several is started in: 8, 4 or 2 of them; null in one that is
/// left over. A bad request of a single process, which names `bench`.
Result<std::unique_ptr<Communicator>> ranks_of_bench(const std::string& bench, World& world);

/// Repetitions of a benchmark of several processes, which start them at the same time, on a quiet
/// machine.
class StartTogether {
 public:
  /// Collective. `all`: every process of the benchmark; it outlives this.
  static Result<StartTogether> make(Communicator& all);

  /// Collective. The first rank waits until other processes are quiet, or its patience is at its
  /// end, a minute for the whole benchmark; the others wait for it.
  Status start(bool counts);
  /// Collective. Each of `ways` `pairs` times, and once before that does not count, another one
  /// first each time.
  Status take_turns(size_t ways, int64_t pairs,
                    const std::function<Status(size_t way, bool counts)>& go);
  /// Foreign load before any repetition that counts, the highest, as the first rank saw it.
  double foreign_load() const { return highest_; }

 private:
  explicit StartTogether(Communicator& all) : all_(&all) {}

  Communicator* all_;
  std::vector<pid_t> own_;  // processes, on whatever host
  Stopwatch since_;
  double highest_ = 0.0;
};

}  // namespace recmill::bench
