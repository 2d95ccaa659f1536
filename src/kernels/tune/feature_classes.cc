// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/feature_classes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

namespace recmill::kernels::tune {
namespace {

/// The step of a geometric scale of factor 1.25 that `value` is nearest to; below 1 / 16 all alike.
int64_t quarter_step(double value) {
  return value < 1.0 / 16 ? -100 : std::lround(std::log(value) / std::log(1.25));
}

auto key_of(const FeatureShape& shape, const std::string& kind) {
  const BagStats& bags = shape.bags;
  return std::tuple(shape.rows, shape.dim, shape.precision, shape.pooling, shape.weighted,
                    bags.one_each(), quarter_step(bags.mean), quarter_step(bags.deviation),
                    std::lround(bags.empty_share * 10),
                    std::bit_width(static_cast<uint64_t>(bags.longest)), kind);
}

/// The mean square of how far bags are from one lookup: at least the share of those that are.
double others_than_one(const BagStats& bags) {
  return bags.deviation * bags.deviation + (bags.mean - 1.0) * (bags.mean - 1.0);
}

}  // namespace

void BagCounter::add(const JaggedView& bags) {
  samples_ += bags.samples;
  lookups_ += bags.lookups();
  for (int64_t i = 0; i < bags.samples; ++i) {
    const int64_t length = bags.offsets[i + 1] - bags.offsets[i];
    empty_ += length == 0;
    longest_ = std::max(longest_, length);
    squares_ += static_cast<double>(length) * static_cast<double>(length);
  }
}

BagStats BagCounter::stats() const {
  if (samples_ == 0) return {};
  const auto samples = static_cast<double>(samples_);
  BagStats stats;
  stats.mean = static_cast<double>(lookups_) / samples;
  stats.deviation = std::sqrt(std::max(0.0, squares_ / samples - stats.mean * stats.mean));
  stats.empty_share = static_cast<double>(empty_) / samples;
  stats.longest = longest_;
  return stats;
}

std::vector<FeatureClass> group_features(std::span<const FeatureShape> shapes,
                                         std::span<const std::string> kinds) {
  std::map<decltype(key_of(shapes[0], {})), size_t> places;
  std::vector<FeatureClass> classes;
  for (size_t f = 0; f < shapes.size(); ++f) {
    const std::string kind = kinds.empty() ? "" : kinds[f];
    const auto [place, added] = places.try_emplace(key_of(shapes[f], kind), classes.size());
    if (added) classes.push_back({shapes[f], {}, kind});
    classes[place->second].features.push_back(static_cast<int64_t>(f));
  }
  return classes;
}

int64_t distinct_rows_of(const JaggedView& bags, std::vector<bool>& seen) {
  if (bags.samples == 0) return 0;
  int64_t distinct = 0;
  const int64_t begin = bags.offsets[0], end = bags.offsets[bags.samples];
  for (int64_t j = begin; j < end; ++j) {
    distinct += !seen[bags.rows[j]];
    seen[bags.rows[j]] = true;
  }
  for (int64_t j = begin; j < end; ++j) seen[bags.rows[j]] = false;
  return distinct;
}

double distance(const BagStats& tuned, const BagStats& now) {
  constexpr double kSmallest = 1.0 / 16;
  // Rarer ones are in few batches, which others' schedules look up; and may be missing by chance.
  constexpr double kRare = 0.0005, kMayBeMissing = 0.01;
  const bool other = tuned.one_each() ? others_than_one(now) >= kRare
                                      : now.one_each() && others_than_one(tuned) >= kMayBeMissing;
  const double larger = std::max({tuned.mean, now.mean, kSmallest});
  const double mean = std::max(tuned.mean, kSmallest) - std::max(now.mean, kSmallest);
  const double deviation =
      std::max(tuned.deviation, kSmallest) - std::max(now.deviation, kSmallest);
  return std::max({std::fabs(mean) / larger,
                   std::fabs(deviation) / std::max({larger, tuned.deviation, now.deviation}),
                   std::fabs(tuned.empty_share - now.empty_share), other ? 1.0 : 0.0});
}

}  // namespace recmill::kernels::tune
