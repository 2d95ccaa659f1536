// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/visits.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace recmill::kernels::tune {
namespace {

/// A visit that takes so many times the median met a hiccup of the machine. Of an even number it is
/// the lower median: of two visits, one late, that one is the hiccup.
constexpr double kHiccup = 2.0;

double half_quartiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() * 3 / 4] - values[values.size() / 4]) / 2.0;
}

}  // namespace

std::vector<size_t> shuffled(size_t count, const Random& random, uint64_t item) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i, item, i)]);
  return order;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double typical(const std::vector<double>& values) {
  std::vector<double> ordered = values;
  const auto middle = ordered.begin() + (std::ssize(ordered) - 1) / 2;
  std::nth_element(ordered.begin(), middle, ordered.end());
  const double most = kHiccup * *middle;
  double sum = 0.0;
  int64_t count = 0;
  for (const double value : values) {
    if (value > most) continue;
    sum += value;
    ++count;
  }
  return sum / static_cast<double>(count);
}

VisitTime time_of(const std::vector<std::vector<double>>& batches) {
  double sum = 0.0, spread = 0.0;
  int64_t visited = 0;
  for (const auto& visits : batches) {
    if (visits.empty()) continue;
    sum += typical(visits);
    spread += half_quartiles(visits);
    ++visited;
  }
  return {visited > 0 ? sum / static_cast<double>(visited) : 0.0, sum > 0.0 ? spread / sum : 0.0};
}

}  // namespace recmill::kernels::tune
