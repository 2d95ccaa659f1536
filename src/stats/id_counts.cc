// SPDX-License-Identifier: Apache-2.0
#include "stats/id_counts.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/random.h"
#include "base/status.h"

namespace recmill::stats {

void HyperLogLog::add(uint64_t id) {
  const uint64_t hash = Random::mix(id);
  const auto index = static_cast<size_t>(hash >> (64 - index_bits));
  const uint64_t rest = (hash << index_bits) | (uint64_t{1} << (index_bits - 1));
  const auto rank = static_cast<uint8_t>(std::countl_zero(rest) + 1);
  ranks_[index] = std::max(ranks_[index], rank);
}

double HyperLogLog::estimate() const {
  constexpr double registers = 1 << index_bits;
  double sum = 0;
  int empty = 0;
  for (uint8_t rank : ranks_) {
    sum += std::ldexp(1.0, -rank);
    empty += rank == 0;
  }
  const double raw = 0.7213 / (1 + 1.079 / registers) * registers * registers / sum;
  if (raw <= 2.5 * registers && empty > 0) return registers * std::log(registers / empty);
  return raw;
}

IdCounts::IdCounts(int64_t limit) : limit_(limit) {
  RECMILL_CHECK(limit >= 2);
}

void IdCounts::add(uint64_t id) {
  ++lookups_;
  const auto [entry, fresh] = counts_.try_emplace(id, 0);
  ++entry->second;
  if (!fresh) return;
  distinct_.add(id);
  if (static_cast<int64_t>(counts_.size()) > limit_) make_room();
}

void IdCounts::make_room() {
  std::vector<int64_t> counts;
  counts.reserve(counts_.size());
  for (const auto& [id, count] : counts_) counts.push_back(count);
  const auto middle = counts.begin() + static_cast<int64_t>(counts.size() / 2);
  std::nth_element(counts.begin(), middle, counts.end());
  undercount_ += *middle;
  for (auto entry = counts_.begin(); entry != counts_.end();) {
    entry->second -= *middle;
    entry = entry->second <= 0 ? counts_.erase(entry) : std::next(entry);
  }
}

int64_t IdCounts::cardinality() const {
  return exact() ? static_cast<int64_t>(counts_.size()) : std::llround(distinct_.estimate());
}

std::vector<int64_t> IdCounts::descending() const {
  std::vector<int64_t> counts;
  counts.reserve(counts_.size());
  for (const auto& [id, count] : counts_) counts.push_back(count);
  std::sort(counts.begin(), counts.end(), std::greater<>());
  return counts;
}

double fitted_zipf(const std::vector<int64_t>& descending) {
  double n = 0, x_sum = 0, y_sum = 0, xx_sum = 0, xy_sum = 0;
  int64_t last = 0;
  for (int half_octave = 0;; ++half_octave) {
    const auto rank = static_cast<int64_t>(std::exp2(0.5 * half_octave) + 0.5);
    if (rank > static_cast<int64_t>(descending.size()) || descending[rank - 1] < 10) break;
    if (rank == last) continue;
    last = rank;
    const double x = std::log(static_cast<double>(rank));
    const double y = std::log(static_cast<double>(descending[rank - 1]));
    n += 1;
    x_sum += x;
    y_sum += y;
    xx_sum += x * x;
    xy_sum += x * y;
  }
  if (n < 3) return 0;
  return -(n * xy_sum - x_sum * y_sum) / (n * xx_sum - x_sum * x_sum);
}

double expected_collisions(int64_t ids, int64_t rows) {
  RECMILL_CHECK(ids >= 0 && rows >= 1);
  const auto n = static_cast<double>(ids), r = static_cast<double>(rows);
  if (rows == 1) return std::max(0.0, n - 1);
  return n + r * std::expm1(n * std::log1p(-1.0 / r));
}

}  // namespace recmill::stats
