// SPDX-License-Identifier: Apache-2.0
#include "bench/alternation.h"

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/random.h"
#include "bench/machine.h"

namespace recmill::bench {
namespace {

constexpr double kLoadWindow = 0.25;  // seconds; a jiffy of two cores is 2 % of it

/// Waits until the machine is quiet or patience is at its end; returns the load last seen, 0 where
/// there is no patience to look.
double wait_for_quiet(const AlternationOptions& options, const Stopwatch& since) {
  if (options.patience_seconds <= 0) return 0;
  double load = foreign_load(options.own, kLoadWindow);
  while (load >= options.quiet_load && since.seconds() < options.patience_seconds)
    load = foreign_load(options.own, kLoadWindow);
  return load;
}

template <typename T>
void shuffle(std::vector<T>& items, const Random& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i, i - 1)]);
}

/// Every batch `passes` times, the passes shuffled together.
std::vector<int64_t> random_order(const AlternationOptions& options, uint64_t repetition) {
  std::vector<int64_t> order(options.batches * options.passes);
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i) % options.batches;
  shuffle(order, Random(options.seed, Purpose::test, repetition));
  return order;
}

double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  const double place = at * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(place);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
}

}  // namespace

double median(std::vector<double> values) {
  return values.empty() ? 0.0 : quantile(std::move(values), 0.5);
}

Result<Turns> take_turns(std::span<const Contender> contenders, const AlternationOptions& options) {
  Turns turns;
  turns.seconds.resize(contenders.size());
  const Stopwatch since;
  std::vector<size_t> turn(contenders.size());
  std::iota(turn.begin(), turn.end(), size_t{0});
  double load = 0.0;
  for (int64_t pair = 0; pair <= options.pairs; ++pair) {
    if (options.mixed)
      shuffle(turn, Random(options.seed, Purpose::test, (uint64_t{1} << 40) + pair));
    for (const size_t c : turn) {
      if (!options.mixed || c == turn[0]) load = wait_for_quiet(options, since);
      const auto order = random_order(options, static_cast<uint64_t>(pair) * contenders.size() + c);
      // Cores that waited are slow at first: the first contender's loss alone, were this measured.
      if (options.mixed && c == turn[0]) RECMILL_RETURN_IF_ERROR(contenders[c](order).status());
      RECMILL_ASSIGN_OR_RETURN(const double seconds, contenders[c](order));
      if (pair == 0) continue;  // warms code and page tables
      turns.foreign_load = std::max(turns.foreign_load, load);
      turns.seconds[c].push_back(seconds / static_cast<double>(order.size()));
    }
  }
  return turns;
}

Result<Timing> alternate(const Contender& ours, const Contender& rival,
                         const AlternationOptions& options) {
  std::vector<Contender> contenders{ours};
  if (rival) contenders.push_back(rival);
  RECMILL_ASSIGN_OR_RETURN(const Turns turns, take_turns(contenders, options));
  return rival ? turns.timing(0, 1) : Timing{turns.seconds[0], {}, turns.foreign_load};
}

Ratio ratio_of(const Timing& timing) {
  Ratio result;
  if (timing.rivals.empty()) return result;
  std::vector<double> ratios;
  for (size_t i = 0; i < timing.ours.size(); ++i)
    ratios.push_back(timing.rivals[i] / timing.ours[i]);
  result.ratio = median(timing.rivals) / median(timing.ours);
  result.spread = (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2.0 / result.ratio;
  return result;
}

}  // namespace recmill::bench
