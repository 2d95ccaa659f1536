// SPDX-License-Identifier: Apache-2.0
#include "kernels/schedule/task_map.h"

#include <algorithm>

namespace recmill::kernels {
namespace {

/// The cost of samples [first, last).
double cost_of(const FeatureWork& work, int64_t first, int64_t last) {
  if (last - first == work.samples) return work.cost();
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

/// A task has this share of the cost that is left for a thread, and no less than that of the whole.
constexpr double kShareOfLeft = 0.5, kLeastShare = 1.0 / 64.0;

}  // namespace

void map_tasks(std::span<const FeatureWork> features, const TaskMapOptions& options, TaskMap& map) {
  double total = 0.0;
  for (const FeatureWork& work : features) total += work.cost();
  const double threads = options.threads;
  const double least = std::max(total * kLeastShare / threads, options.least_task);
  const auto target_of = [&](double left) {
    return std::max(left * kShareOfLeft / threads, least);
  };
  map.pieces.clear();
  map.begins.assign(1, 0);
  double left = total, target = target_of(left), in_task = 0.0;
  const auto close = [&] {
    map.begins.push_back(static_cast<int64_t>(map.pieces.size()));
    left -= in_task;
    target = target_of(left);
    in_task = 0.0;
  };
  for (size_t f = 0; f < features.size(); ++f) {
    const FeatureWork& work = features[f];
    for (int64_t first = 0; first < work.samples;) {
      const int64_t limit = std::min(work.samples, first + options.tile);
      const double rest = cost_of(work, first, limit);
      // A feature that is little too much stays whole, and none is begun for little: cutting one
      // has its price too.
      const bool fits = in_task + rest <= 1.25 * target;
      if (!fits && in_task >= 0.75 * target) {
        close();
        continue;
      }
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
