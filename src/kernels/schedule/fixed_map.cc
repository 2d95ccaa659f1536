// SPDX-License-Identifier: Apache-2.0
#include "kernels/schedule/fixed_map.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"

namespace recmill::kernels {
namespace {

/// Sample of feature `f` at which a cut falls.
int64_t sample_at(const FixedCut& cut, int64_t f, int64_t samples) {
  if (f != cut.feature) return f < cut.feature ? samples : 0;
  return std::min<int64_t>(samples, std::llround(cut.share * static_cast<double>(samples)));
}

}  // namespace

std::vector<FixedCut> fixed_cuts(std::span<const double> costs, int threads) {
  double total = 0.0;
  for (double cost : costs) total += cost;
  std::vector<FixedCut> cuts(1);
  double before = 0.0;  // cost of the features up to f
  size_t f = 0;
  for (int t = 1; t < threads; ++t) {
    const double target = total * t / threads;
    while (f < costs.size() && before + costs[f] <= target) before += costs[f++];
    const double share = f < costs.size() ? (target - before) / costs[f] : 0.0;
    cuts.push_back({static_cast<int64_t>(f), share});
  }
  cuts.push_back({static_cast<int64_t>(costs.size()), 0.0});
  return cuts;
}

void map_fixed(std::span<const FeatureWork> features, std::span<const FixedCut> cuts, int64_t tile,
               TaskMap& map) {
  RECMILL_CHECK(!cuts.empty() && cuts.back().feature == static_cast<int64_t>(features.size()));
  map.pieces.clear();
  map.begins.assign(1, 0);
  for (size_t t = 0; t + 1 < cuts.size(); ++t) {
    const int64_t end = std::min(cuts[t + 1].feature + 1, static_cast<int64_t>(features.size()));
    for (int64_t f = cuts[t].feature; f < end; ++f) {
      const int64_t last = sample_at(cuts[t + 1], f, features[f].samples);
      for (int64_t first = sample_at(cuts[t], f, features[f].samples); first < last;
           first += std::min(tile, last - first))
        map.pieces.push_back({f, first, std::min(last, first + std::min(tile, last - first))});
    }
    if (map.begins.back() != static_cast<int64_t>(map.pieces.size()))
      map.begins.push_back(static_cast<int64_t>(map.pieces.size()));
  }
}

void map_sample_blocks(std::span<const FeatureWork> features, int64_t block, TaskMap& map) {
  RECMILL_CHECK(block >= 1);
  int64_t samples = 0;
  for (const FeatureWork& work : features) samples = std::max(samples, work.samples);
  map.pieces.clear();
  map.begins.assign(1, 0);
  for (int64_t first = 0; first < samples; first += block) {
    for (size_t f = 0; f < features.size(); ++f) {
      const int64_t last = std::min(first + block, features[f].samples);
      if (first < last) map.pieces.push_back({static_cast<int64_t>(f), first, last});
    }
    map.begins.push_back(static_cast<int64_t>(map.pieces.size()));
  }
}

}  // namespace recmill::kernels
