// SPDX-License-Identifier: Apache-2.0
// Compares ways of doing the same work on a machine whose speed changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace recmill::kernels::tune {

/// Runs its way of doing the work, and returns seconds.
using Entrant = std::function<Result<double>()>;

/// Of all entrants, however little time there is.
inline constexpr int64_t kLeastRounds = 3;

struct RaceOptions {
  /// Of all entrants, at least.
  int64_t rounds = 1;
  /// Small work needs more rounds: so many seconds of each entrant, or 100 rounds.
  double seconds = 0.0;
  /// An entrant that takes so many times the least after five rounds runs no more; 0: all run.
  double far_behind = 0.0;
  /// By the clock; after that there are fewer rounds, but kLeastRounds.
  int64_t until_ns = std::numeric_limits<int64_t>::max();
};

/// Seconds of each entrant. They run in alternation, each round from another one on, and are
/// compared round by round: how fast the machine was meanwhile changes all of them alike, and a
/// place in a round is nobody's own. `stop` ends it early with an error.
Result<std::vector<double>> race(std::span<const Entrant> entrants, const RaceOptions& options,
                                 const Clock& clock, const std::atomic<bool>& stop);

}  // namespace recmill::kernels::tune
