// SPDX-License-Identifier: Apache-2.0
#include "kernels/schedule/task_map.h"

#include <algorithm>

namespace recmill::kernels {
namespace {

/// The cost of samples [first, last).
double cost_of(const FeatureWork& work, int64_t first, int64_t last) {
  return work.per_lookup * static_cast<double>(work.offsets[last] - work.offsets[first]) +
         work.per_sample * static_cast<double>(last - first);
}

/// The smallest last > first that costs at least `cost`, at most `limit`.
int64_t reach(const FeatureWork& work, int64_t first, int64_t limit, double cost) {
  int64_t low = first + 1, high = limit;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (cost_of(work, first, middle) >= cost) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// Features whose counts are on their way from memory, where each has them somewhere else.
constexpr size_t kFetchedFeatures = 16;

void fetch_counts(const FeatureWork& work) {
  __builtin_prefetch(work.offsets);
  __builtin_prefetch(work.offsets + work.samples);
}

}  // namespace

void map_tasks(std::span<const FeatureWork> features, const TaskMapOptions& options, TaskMap& map) {
  double total = 0.0;
  for (size_t f = 0; f < features.size(); ++f) {
    if (f + kFetchedFeatures < features.size()) fetch_counts(features[f + kFetchedFeatures]);
    total += features[f].cost();
  }
  const auto tasks = static_cast<double>(options.threads * options.tasks_per_thread);
  const double target = std::max(total / tasks, options.least_task);
  map.pieces.clear();
  map.begins.assign(1, 0);
  double in_task = 0.0;
  const auto close = [&] {
    map.begins.push_back(static_cast<int64_t>(map.pieces.size()));
    in_task = 0.0;
  };
  for (size_t f = 0; f < features.size(); ++f) {
    const FeatureWork& work = features[f];
    for (int64_t first = 0; first < work.samples;) {
      const int64_t limit = std::min(work.samples, first + options.tile);
      const double rest = cost_of(work, first, limit);
      // A feature that is little too much stays whole: cutting one has its price too.
      const bool fits = in_task + rest <= 1.25 * target;
      const int64_t last = fits ? limit : reach(work, first, limit, target - in_task);
      in_task += fits ? rest : cost_of(work, first, last);
      map.pieces.push_back({static_cast<int64_t>(f), first, last});
      if (in_task >= target) close();
      first = last;
    }
  }
  if (map.begins.back() != static_cast<int64_t>(map.pieces.size())) close();
}

}  // namespace recmill::kernels
