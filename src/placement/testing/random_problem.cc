// SPDX-License-Identifier: Apache-2.0
#include "placement/testing/random_problem.h"

#include <cmath>
#include <numeric>
#include <random>

namespace recmill::placement::testing {

TableCounts counts_of(const std::string& table, std::span<const int64_t> counts, int64_t hot_from,
                      int64_t range) {
  TableCounts result;
  result.table = table;
  result.rows = static_cast<int64_t>(counts.size());
  result.range_rows = range;
  result.range_lookups.resize((counts.size() + range - 1) / range);
  for (size_t row = 0; row < counts.size(); ++row) {
    result.lookups += counts[row];
    if (counts[row] >= hot_from) {
      result.hot_rows.push_back(static_cast<int64_t>(row));
      result.hot_counts.push_back(counts[row]);
      continue;
    }
    result.range_lookups[row / range] += counts[row];
    if (result.tail_rows_by_count.size() <= static_cast<size_t>(counts[row]))
      result.tail_rows_by_count.resize(counts[row] + 1);
    ++result.tail_rows_by_count[counts[row]];
  }
  result.bags = result.lookups;
  return result;
}

namespace {

/// Rows that a hundredth of the samples look up; of every third table all rows.
HotSet hot_set_of(const AccessCounts& counts) {
  HotSet set;
  set.inputs = counts.samples;
  set.cutoff = std::max<int64_t>(1, counts.samples / 100);
  for (const TableCounts& of : counts.tables) {
    HotTable& table = set.tables.emplace_back();
    table.table = of.table;
    table.rows = of.rows;
    table.all_hot = set.tables.size() % 3 == 0;
    for (size_t i = 0; !table.all_hot && i < of.hot_rows.size(); ++i)
      if (of.hot_counts[i] >= set.cutoff) table.hot_rows.push_back(of.hot_rows[i]);
  }
  return set;
}

}  // namespace

Problem zipf_problem(std::span<const int64_t> rows, int64_t dim, double exponent, int devices,
                     int64_t samples_counted, uint64_t seed) {
  Problem problem;
  problem.counts.samples = samples_counted;
  std::mt19937_64 random(seed);
  for (size_t t = 0; t < rows.size(); ++t) {
    PlacedTable table;
    table.spec.name = "t" + std::to_string(t);
    table.spec.rows = rows[t];
    table.spec.dim = dim;
    table.row_bytes = dim * 4;
    std::vector<double> weights(rows[t]);
    double sum = 0;
    for (int64_t k = 0; k < rows[t]; ++k)
      sum += weights[k] = std::pow(static_cast<double>(k + 1), -exponent);
    std::vector<int64_t> place(rows[t]), counts(rows[t]);
    std::iota(place.begin(), place.end(), 0);
    for (int64_t k = rows[t] - 1; k > 0; --k)
      std::swap(place[k], place[random() % static_cast<uint64_t>(k + 1)]);
    // Expected counts, rounded at random so that they add up to about the samples.
    for (int64_t k = 0; k < rows[t]; ++k) {
      const double expected = weights[k] / sum * static_cast<double>(samples_counted);
      const double chance = static_cast<double>(random() >> 11) * 0x1p-53;
      counts[place[k]] = static_cast<int64_t>(expected + chance);
    }
    problem.counts.tables.push_back(counts_of(table.spec.name, counts, 2, 16));
    problem.tables.push_back(std::move(table));
  }
  problem.hot_set = std::make_shared<const HotSet>(hot_set_of(problem.counts));
  problem.cluster = equal_devices(devices, 4 * problem.total_bytes() / devices + 4096, 0.1);
  problem.samples = 4096;
  return problem;
}

}  // namespace recmill::placement::testing
