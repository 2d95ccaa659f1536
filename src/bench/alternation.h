// SPDX-License-Identifier: Apache-2.0
// How two contenders are timed: in alternation, in one run, on a quiet machine, over batches in
// random order, so that nobody runs from a warm cache.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace recmill::bench {

/// Runs the batches in the given order and returns the seconds they took together.
using Contender = std::function<Result<double>(std::span<const int64_t> order)>;

struct AlternationOptions {
  int64_t batches = 16;
  int64_t passes = 4;        // over the batches in each repetition, so that one takes long enough
  int64_t pairs = 7;         // timed; one more of each goes before, unmeasured
  uint64_t seed = 1;         // of the orders
  double quiet_load = 0.08;  // a repetition waits until the foreign load is below it,
  double patience_seconds = 60.0;  // at most so long for the whole measurement
  std::vector<pid_t> own = {};     // processes that are not foreign
  // For many contenders whose repetitions are short: they take turns in another order each time,
  // and wait once a time, so that no two are far apart; who is first runs once more before it
  // counts.
  bool mixed = false;
};

struct Timing {
  std::vector<double> ours;    // [pairs], seconds a batch
  std::vector<double> rivals;  // [pairs], or empty
  double foreign_load = 0.0;   // the highest before any repetition
};

/// Seconds a batch of several contenders that take turns.
struct Turns {
  std::vector<std::vector<double>> seconds;  // [contenders][pairs]
  double foreign_load = 0.0;
  /// The times of contender `rival` beside those of `ours`.
  Timing timing(size_t ours, size_t rival) const {
    return {seconds[ours], seconds[rival], foreign_load};
  }
};
Result<Turns> take_turns(std::span<const Contender> contenders, const AlternationOptions& options);

/// Two of them: `rival` may be empty: then only ours is timed.
Result<Timing> alternate(const Contender& ours, const Contender& rival,
                         const AlternationOptions& options);

double median(std::vector<double> values);

/// Ratio of medians, rival to ours, and how far the pairs lie from it: half the distance between
/// the quartiles of the pairs' ratios, as a share of the ratio.
struct Ratio {
  double ratio = 0.0;
  double spread = 0.0;
};
Ratio ratio_of(const Timing& timing);

}  // namespace recmill::bench
