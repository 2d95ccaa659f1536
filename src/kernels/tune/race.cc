// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/race.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace recmill::kernels::tune {
namespace {

constexpr int64_t kMostRounds = 100, kRoundsOfEach = 5;

/// The mean of the half in the middle: neither hiccups nor, where places in a round differ, which
/// of two places was had once more often decide it.
double middle_mean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t left_out = (values.size() + 1) / 4;
  const double sum = std::accumulate(values.begin() + left_out, values.end() - left_out, 0.0);
  return sum / static_cast<double>(values.size() - 2 * left_out);
}

struct Lane {
  // Of ratios to the first entrant, their logarithms [rounds]: neither side of a ratio is favoured.
  std::vector<double> logs;
  bool left_out = false;

  double ratio() const { return std::exp(middle_mean(logs)); }
};

double least_ratio(const std::vector<Lane>& lanes) {
  double least = std::numeric_limits<double>::max();
  for (const Lane& lane : lanes) least = std::min(least, lane.ratio());
  return least;
}

void leave_out(std::vector<Lane>& lanes, double limit) {
  for (Lane& lane : lanes) lane.left_out = lane.ratio() > limit;
  lanes[0].left_out = false;  // all others are compared with it
}

/// The seconds of those that run, in one round that begins with entrant `begin`.
Result<std::vector<double>> round_of(std::span<const Entrant> entrants,
                                     const std::vector<Lane>& lanes, size_t begin,
                                     const std::atomic<bool>& stop) {
  std::vector<double> seconds(entrants.size());
  for (size_t place = 0; place < entrants.size(); ++place) {
    const size_t e = (begin + place) % entrants.size();
    if (lanes[e].left_out) continue;
    if (stop) return Status::Failed("interrupted");
    RECMILL_ASSIGN_OR_RETURN(seconds[e], entrants[e]());
  }
  return seconds;
}

}  // namespace

Result<std::vector<double>> race(std::span<const Entrant> entrants, const RaceOptions& options,
                                 const Clock& clock, const std::atomic<bool>& stop) {
  std::vector<Lane> lanes(entrants.size());
  std::vector<double> first;  // seconds of the first entrant [rounds]
  double spent = 0.0, wanted = 0.0;
  for (int64_t round = 0; round < options.rounds || (round < kMostRounds && spent < wanted);
       ++round) {
    if (round >= kLeastRounds && clock.now_ns() > options.until_ns) break;
    if (round == kRoundsOfEach && options.far_behind > 0.0)
      leave_out(lanes, options.far_behind * least_ratio(lanes));
    RECMILL_ASSIGN_OR_RETURN(
        const auto seconds,
        round_of(entrants, lanes, static_cast<size_t>(round) % lanes.size(), stop));
    first.push_back(seconds[0]);
    wanted = 0.0;
    for (size_t e = 0; e < lanes.size(); ++e) {
      if (lanes[e].left_out) continue;
      lanes[e].logs.push_back(std::log(seconds[e] / seconds[0]));
      spent += seconds[e];
      wanted += options.seconds;
    }
  }
  std::vector<double> made;
  made.reserve(lanes.size());
  for (const Lane& lane : lanes) made.push_back(middle_mean(first) * lane.ratio());
  return made;
}

}  // namespace recmill::kernels::tune
