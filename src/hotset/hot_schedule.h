// SPDX-License-Identifier: Apache-2.0
// In which order hot and cold batches come (FAE, section III-C): schedules, each a block of cold
// batches and one of hot ones, of so many percent of both. The percentage, the rate, follows from
// the loss after each schedule. A state machine of plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"

namespace recmill::hotset {

/// Percents of an epoch, exact: multiples of 1 / (64 x 10^6), so that halves of 100 and decimals of
/// six places are.
class Percent {
 public:
  Percent() = default;
  /// At most 100, and with at most six decimals; else none.
  static std::optional<Percent> of(double percent);

  double value() const { return static_cast<double>(units_) / kUnits; }
  /// ceil(this percentage of `batches`)
  int64_t share_of(int64_t batches) const;
  Percent half() const;   // not below 1
  Percent twice() const;  // not above 100
  /// Their sum, not above 100.
  Percent operator+(Percent other) const;
  auto operator<=>(const Percent&) const = default;

 private:
  static constexpr int64_t kUnits = 64'000'000;
  explicit Percent(int64_t units) : units_(units) {}
  int64_t units_ = 0;
};

/// How many batches an epoch has of each kind.
struct HotBatches {
  int64_t cold = 0, hot = 0;
  bool operator==(const HotBatches&) const = default;
};

/// Where training is among schedules, as a value that a checkpoint holds.
struct ScheduleState {
  int64_t schedule = 0;  // of the run, from 0
  Percent done;          // of the epoch, once this schedule is over: the sum of its rates
  Percent rate;          // of this schedule
  std::optional<double> last_loss;
  int64_t decreases = 0;  // of the loss, in a row
  bool judged = false;    // whether the loss after this schedule is in what is above

  /// Batches of the epoch that are trained once this schedule is over.
  HotBatches end(const HotBatches& epoch) const {
    return {done.share_of(epoch.cold), done.share_of(epoch.hot)};
  }
  bool ends_epoch() const { return done == *Percent::of(100); }
  bool operator==(const ScheduleState&) const = default;
};

inline constexpr double kFirstRate = 50.0;
inline constexpr int64_t kDecreases = 4;  // u: in a row, that double the rate

/// The first schedule of a run.
ScheduleState first_schedule(Percent rate);
/// The schedule after this one, of the same epoch or of the next.
ScheduleState next_schedule(const ScheduleState& state);
/// What the loss after the schedule makes of it (FAE, equation 7): the rate of the next one. The
/// first loss changes nothing; one above the last halves the rate; the fourth decrease in a row
/// doubles it; either, and an equal loss, begin the count anew.
ScheduleState judged(const ScheduleState& state, double loss);

/// A schedule with batches.
struct Block {
  int64_t schedule = 0;
  Percent rate;
  int64_t cold = 0, hot = 0;  // batches
};
/// The schedules of an epoch whose losses are given, in order; those beyond keep the last rate.
/// Schedules without a batch are left out, and have no loss. `state` is the first, and becomes that
/// after the epoch.
std::vector<Block> blocks_of_epoch(const HotBatches& epoch, std::span<const double>& losses,
                                   ScheduleState& state);

}  // namespace recmill::hotset
