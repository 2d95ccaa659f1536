// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/mutation.h"

#include <algorithm>

#include "base/clock.h"
#include "bench/alternation.h"

namespace recmill::bench {

Exchange exchange_of(std::span<const std::vector<double>> seconds, size_t chosen) {
  std::vector<double> medians;
  for (const auto& rounds : seconds) medians.push_back(median(rounds));
  const auto best = std::min_element(medians.begin(), medians.end());
  const auto worst = std::max_element(medians.begin(), medians.end());
  return {medians[chosen], *best, *worst, static_cast<size_t>(best - medians.begin()),
          static_cast<size_t>(worst - medians.begin())};
}

Judgement judge(std::span<const Exchange> exchanges) {
  Judgement judgement;
  std::vector<double> regrets;
  for (const Exchange& exchange : exchanges) {
    if (exchange.can_tell()) regrets.push_back(exchange.regret());
  }
  if (regrets.empty()) return judgement;
  judgement.told = static_cast<int64_t>(regrets.size());
  judgement.median_regret = median(regrets);
  judgement.largest_regret = *std::max_element(regrets.begin(), regrets.end());
  return judgement;
}

std::vector<std::vector<size_t>> combinations(size_t places, size_t choices) {
  std::vector<std::vector<size_t>> all{{}};
  for (size_t place = 0; place < places; ++place) {
    std::vector<std::vector<size_t>> longer;
    for (const auto& begin : all) {
      for (size_t choice = 0; choice < choices; ++choice) {
        longer.push_back(begin);
        longer.back().push_back(choice);
      }
    }
    all = std::move(longer);
  }
  return all;
}

void run_timed(const kernels::FusedPool& fused, std::span<const kernels::PoolTask> tasks,
               const kernels::TaskMap& map, std::span<const int64_t> features, ThreadPool& pool,
               std::span<double> seconds) {
  const size_t count = features.size();
  std::vector<double> times(map.tasks() * count, 0.0);  // [tasks][features]
  const auto place_of = [&](const kernels::Piece& piece) {
    const auto found = std::lower_bound(features.begin(), features.end(), piece.feature);
    return found != features.end() && *found == piece.feature
               ? static_cast<size_t>(found - features.begin())
               : count;
  };
  pool.run(map.tasks(), [&](int64_t t) {
    for (int64_t p = map.begins[t]; p < map.begins[t + 1];) {
      const size_t place = place_of(map.pieces[p]);
      int64_t end = p + 1;
      while (end < map.begins[t + 1] && place_of(map.pieces[end]) == place) ++end;
      const Stopwatch watch;
      fused.run_task(tasks, std::span(map.pieces).subspan(p, end - p));
      if (place < count) times[t * count + place] += watch.seconds();
      p = end;
    }
  });
  for (size_t i = 0; i < times.size(); ++i) seconds[i % count] += times[i];
}

}  // namespace recmill::bench
