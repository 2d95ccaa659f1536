// SPDX-License-Identifier: Apache-2.0
#include "hotset/hot_schedule.h"

#include <algorithm>
#include <cmath>

namespace recmill::hotset {

std::optional<Percent> Percent::of(double percent) {
  if (!(percent > 0 && percent <= 100)) return std::nullopt;
  const auto units = static_cast<int64_t>(std::round(percent * kUnits));
  if (static_cast<double>(units) / kUnits != percent) return std::nullopt;
  return Percent(units);
}

int64_t Percent::share_of(int64_t batches) const {
  constexpr auto kWhole = static_cast<__int128>(100) * kUnits;
  return static_cast<int64_t>((static_cast<__int128>(units_) * batches + kWhole - 1) / kWhole);
}

Percent Percent::half() const {
  return Percent(std::max(units_ / 2, kUnits));
}

Percent Percent::twice() const {
  return Percent(std::min(units_ * 2, 100 * kUnits));
}

Percent Percent::operator+(Percent other) const {
  return Percent(std::min(units_ + other.units_, 100 * kUnits));
}

ScheduleState first_schedule(Percent rate) {
  ScheduleState state;
  state.done = state.rate = rate;
  return state;
}

ScheduleState next_schedule(const ScheduleState& state) {
  ScheduleState next = state;
  ++next.schedule;
  next.done = state.ends_epoch() ? state.rate : state.done + state.rate;
  next.judged = false;
  return next;
}

ScheduleState judged(const ScheduleState& state, double loss) {
  ScheduleState next = state;
  next.judged = true;
  next.last_loss = loss;
  if (!state.last_loss) return next;
  if (loss > *state.last_loss) next.rate = state.rate.half();
  next.decreases = loss < *state.last_loss ? state.decreases + 1 : 0;
  if (next.decreases == kDecreases) {
    next.rate = state.rate.twice();
    next.decreases = 0;
  }
  return next;
}

std::vector<Block> blocks_of_epoch(const HotBatches& epoch, std::span<const double>& losses,
                                   ScheduleState& state) {
  std::vector<Block> blocks;
  HotBatches trained;
  while (true) {
    const HotBatches end = state.end(epoch);
    const Block block{state.schedule, state.rate, end.cold - trained.cold, end.hot - trained.hot};
    const bool ends_epoch = state.ends_epoch();
    trained = end;
    if (block.cold + block.hot > 0) {
      blocks.push_back(block);
      if (!losses.empty()) {
        state = judged(state, losses.front());
        losses = losses.subspan(1);
      }
    }
    state = next_schedule(state);
    if (ends_epoch) return blocks;
  }
}

}  // namespace recmill::hotset
