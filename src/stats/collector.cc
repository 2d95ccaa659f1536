// SPDX-License-Identifier: Apache-2.0
#include "stats/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <unordered_set>
#include <utility>

namespace recmill::stats {
namespace {

/// Share of `lookups` that the first ceil(share of `cardinality`) counts take.
double top_share(const std::vector<int64_t>& descending, double share, int64_t cardinality,
                 int64_t lookups) {
  if (lookups == 0) return 0;
  const auto top = static_cast<int64_t>(std::ceil(share * static_cast<double>(cardinality)));
  int64_t taken = 0;
  for (int64_t i = 0; i < std::min<int64_t>(top, descending.size()); ++i) taken += descending[i];
  return static_cast<double>(taken) / static_cast<double>(lookups);
}

constexpr size_t kFirstIds = 65536, kFrequentIds = 12;

// Ascending with the value: 0 for 0, and for others of either sign four buckets of the same length
// from each power of two to the next.
int bucket_of(float value) {
  if (value == 0.0f) return 0;
  int exponent = 0;
  const float part = std::frexp(std::abs(value), &exponent);  // in [1/2, 1)
  const int bucket = 4 * (exponent + 200) + static_cast<int>(part * 8.0f) - 4;
  return value < 0.0f ? -bucket : bucket;
}

// The ends that bucket_of() tells of. What is below 0 lies in (from, to].
ValueBucket empty_bucket(int bucket) {
  if (bucket == 0) return {};
  const int number = std::abs(bucket);
  const auto end = [&](int of) { return std::ldexp(4 + of % 4, of / 4 - 200 - 3); };
  const double least = end(number), most = end(number + 1);
  return bucket < 0 ? ValueBucket{-most, -least, 0, 0} : ValueBucket{least, most, 0, 0};
}

std::vector<FrequentId> most_frequent(const std::unordered_map<uint64_t, FrequentId>& ids) {
  std::vector<FrequentId> sorted;
  for (const auto& [id, counted] : ids) sorted.push_back(counted);
  const size_t kept = std::min(kFrequentIds, sorted.size());
  std::partial_sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(kept),
                    sorted.end(), [](const FrequentId& a, const FrequentId& b) {
                      return std::pair(-a.lookups, a.id) < std::pair(-b.lookups, b.id);
                    });
  sorted.resize(kept);
  return sorted;
}

std::string percent(double part, double whole) {
  return fmt::format("{:.1f} %", whole > 0 ? 100.0 * part / whole : 0.0);
}

}  // namespace

Collector::Collector(const DataSchema& schema, int64_t id_limit)
    : schema_(schema), dense_(schema.dense.size()) {
  for (size_t c = 0; c < schema.ids.size(); ++c) {
    ids_.push_back({IdCounts(id_limit), std::vector<int64_t>(1), 0, 0, 0.0, {}});
  }
}

void Collector::count(const IdColumn& cells, const std::vector<float>& labels,
                      IdColumnState& state) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t length = cells.offsets[i + 1] - cells.offsets[i];
    const auto bucket = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(length)));
    if (state.lengths.size() <= bucket) state.lengths.resize(bucket + 1);
    ++state.lengths[bucket];
    state.missing += length == 0;
    state.missing_labels += length == 0 ? labels[i] : 0.0;
    state.longest = std::max(state.longest, length);
    for (int64_t at = cells.offsets[i]; at < cells.offsets[i + 1]; ++at) {
      const uint64_t id = cells.ids[static_cast<size_t>(at)];
      const auto found = state.first.find(id);
      if (found == state.first.end() && state.first.size() >= kFirstIds) continue;
      FrequentId& of = found == state.first.end() ? state.first[id] : found->second;
      of.id = id;
      ++of.lookups;
      of.labels += labels[i];
    }
  }
  for (uint64_t id : cells.ids) state.counts.add(id);
}

void Collector::count(const std::vector<float>& cells, const std::vector<float>& labels,
                      DenseColumnState& state) {
  for (size_t i = 0; i < cells.size(); ++i) {
    const float value = cells[i];
    if (std::isnan(value)) {
      ++state.missing;
      state.missing_labels += labels[i];
      continue;
    }
    const int bucket = bucket_of(value);
    const auto [at, is_new] = state.buckets.try_emplace(bucket);
    if (is_new) at->second = empty_bucket(bucket);
    ++at->second.cells;
    at->second.labels += labels[i];
    state.minimum = state.present == 0 ? value : std::min<double>(state.minimum, value);
    state.maximum = state.present == 0 ? value : std::max<double>(state.maximum, value);
    state.sum += value;
    ++state.present;
  }
}

void Collector::add(const ColumnBatch& batch, ThreadPool& pool) {
  RECMILL_CHECK(batch.ids.size() == ids_.size() && batch.dense.size() == dense_.size());
  RECMILL_CHECK(static_cast<int64_t>(batch.labels.size()) == batch.samples);
  const auto dense = static_cast<int64_t>(dense_.size());
  const auto columns = dense + static_cast<int64_t>(ids_.size());
  pool.run(columns, [&](int64_t c) {
    if (c < dense) return count(batch.dense[c], batch.labels, dense_[c]);
    count(batch.ids[c - dense], batch.labels, ids_[c - dense]);
  });
  samples_ += batch.samples;
  for (float label : batch.labels) labels_ += label;
}

IdColumnStats Collector::measure(const IdColumnState& state, const ColumnTable& table) {
  const std::vector<int64_t> descending = state.counts.descending();
  IdColumnStats stats;
  stats.missing = state.missing;
  stats.missing_labels = state.missing_labels;
  stats.frequent = most_frequent(state.first);
  stats.lookups = state.counts.lookups();
  stats.longest = state.longest;
  stats.lengths = state.lengths;
  stats.exact = state.counts.exact();
  stats.cardinality = state.counts.cardinality();
  stats.undercount = state.counts.undercount();
  stats.top_1_percent = top_share(descending, 0.01, stats.cardinality, stats.lookups);
  stats.top_10_percent = top_share(descending, 0.1, stats.cardinality, stats.lookups);
  stats.zipf = fitted_zipf(descending);
  stats.table_rows = table.rows;
  if (table.rows == 0) return stats;
  stats.expected_collisions = expected_collisions(stats.cardinality, table.rows);
  if (!table.row_of || !stats.exact) return stats;
  std::unordered_set<int64_t> rows;
  for (const auto& [id, count] : state.counts.held()) rows.insert(table.row_of(id));
  stats.observed_collisions = stats.cardinality - static_cast<int64_t>(rows.size());
  return stats;
}

FeatureStats Collector::finish(const std::vector<ColumnTable>& tables) const {
  RECMILL_CHECK(tables.empty() || tables.size() == ids_.size());
  FeatureStats stats;
  stats.samples = samples_;
  stats.label_mean = samples_ > 0 ? labels_ / static_cast<double>(samples_) : 0.0;
  for (size_t c = 0; c < dense_.size(); ++c) {
    const DenseColumnState& state = dense_[c];
    const double mean = state.present > 0 ? state.sum / static_cast<double>(state.present) : 0.0;
    stats.dense.push_back({schema_.dense[c],
                           state.missing,
                           state.minimum,
                           state.maximum,
                           mean,
                           state.missing_labels,
                           {}});
    for (const auto& [number, bucket] : state.buckets) stats.dense.back().buckets.push_back(bucket);
  }
  for (size_t c = 0; c < ids_.size(); ++c) {
    stats.ids.push_back(measure(ids_[c], tables.empty() ? ColumnTable() : tables[c]));
    stats.ids.back().name = schema_.ids[c];
  }
  return stats;
}

std::string table_of(const FeatureStats& stats) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  const auto samples = static_cast<double>(stats.samples);
  fmt::format_to(out, "{} samples, mean label {:.4f}\n", stats.samples, stats.label_mean);
  if (!stats.dense.empty()) {
    fmt::format_to(out, "\n{:<20} {:>9} {:>13} {:>13} {:>13}\n", "dense column", "missing",
                   "minimum", "maximum", "mean");
  }
  for (const DenseColumnStats& c : stats.dense) {
    fmt::format_to(out, "{:<20} {:>9} {:>13.6g} {:>13.6g} {:>13.6g}\n", c.name,
                   percent(static_cast<double>(c.missing), samples), c.minimum, c.maximum, c.mean);
  }
  if (!stats.ids.empty()) {
    fmt::format_to(out, "\n{:<20} {:>9} {:>11} {:>9} {:>8} {:>8} {:>6} {:>11} {:>11} {:>11}\n",
                   "id column", "missing", "ids", "a bag", "top 1 %", "top 10 %", "Zipf",
                   "table rows", "collisions", "expected");
  }
  for (const IdColumnStats& c : stats.ids) {
    const auto bags = static_cast<double>(stats.samples - c.missing);
    const std::string mark = c.exact ? "" : "~";
    const bool table = c.table_rows > 0;
    fmt::format_to(
        out, "{:<20} {:>9} {:>11} {:>9.2f} {:>8} {:>8} {:>6} {:>11} {:>11} {:>11}\n", c.name,
        percent(static_cast<double>(c.missing), samples), mark + std::to_string(c.cardinality),
        bags > 0 ? static_cast<double>(c.lookups) / bags : 0.0, mark + percent(c.top_1_percent, 1),
        mark + percent(c.top_10_percent, 1), c.zipf > 0 ? fmt::format("{:.2f}", c.zipf) : "-",
        table ? std::to_string(c.table_rows) : "-",
        c.observed_collisions >= 0 ? std::to_string(c.observed_collisions) : "-",
        table ? mark + fmt::format("{:.0f}", c.expected_collisions) : "-");
  }
  return fmt::to_string(text);
}

}  // namespace recmill::stats
