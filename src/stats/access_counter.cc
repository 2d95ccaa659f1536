// SPDX-License-Identifier: Apache-2.0
#include "stats/access_counter.h"

#include <algorithm>
#include <array>
#include <map>

#include "stats/counted_table.h"
#include "stats/hot_threshold.h"

namespace recmill::stats {
namespace {

constexpr int64_t kLine = 64;             // rows whose counters share a cache line
constexpr int64_t kAhead = 32;            // lookups that counters are fetched ahead
constexpr int64_t kSplitAbove = 1 << 14;  // lookups of a table that are worth several tasks

int64_t bags_with_lookups(const SparseFeature& feature, int64_t samples) {
  if (feature.one_each) return samples;
  int64_t bags = 0;
  for (int64_t i = 0; i < samples; ++i) bags += feature.offsets[i + 1] > feature.offsets[i];
  return bags;
}

/// Adds one to the counter of each row; rows whose counter becomes 0 go to `wrapped`.
void count_rows(std::span<const int64_t> rows, uint8_t* counters, std::vector<int64_t>& wrapped) {
  const auto size = std::ssize(rows);
  const int64_t fetched = std::max<int64_t>(0, size - kAhead);
  const auto count = [&](int64_t row) {
    if (++counters[row] == 0) [[unlikely]]
      wrapped.push_back(row);
  };
  for (int64_t i = 0; i < std::min(size, kAhead); ++i) __builtin_prefetch(counters + rows[i], 1);
  for (int64_t i = 0; i < fetched; ++i) {
    __builtin_prefetch(counters + rows[i + kAhead], 1);
    count(rows[i]);
  }
  for (int64_t i = fetched; i < size; ++i) count(rows[i]);
}

/// Which of `parts` counts a row: one for a whole cache line of counters, so that none is shared,
/// and lines scattered, since ids that are sorted by count are common.
int64_t part_of(int64_t row, int64_t parts) {
  const auto line = static_cast<uint64_t>(row / kLine) * 0x9E3779B97F4A7C15ull;
  return static_cast<int64_t>(((line >> 32) * static_cast<uint64_t>(parts)) >> 32);
}

/// The same for the rows of one part alone.
void count_rows_of_part(std::span<const int64_t> rows, int64_t part, int64_t parts,
                        uint8_t* counters, std::vector<int64_t>& wrapped) {
  constexpr size_t kBlock = 1024;
  int64_t own[kBlock];
  for (size_t first = 0; first < rows.size(); first += kBlock) {
    size_t held = 0;
    for (const int64_t row : rows.subspan(first, std::min(kBlock, rows.size() - first))) {
      own[held] = row;
      held += part_of(row, parts) == part;
    }
    count_rows({own, held}, counters, wrapped);
  }
}

}  // namespace

/// Some rows of a table, of one batch.
struct AccessCounter::Task {
  size_t table = 0;
  int64_t part = 0, parts = 1;
  int64_t lookups = 0;  // of all parts
  std::vector<std::span<const int64_t>> features;
  std::vector<int64_t> wrapped;
};

Result<AccessCounter> AccessCounter::create(const ModelSpec& spec, std::string model) {
  AccessCounter counter;
  counter.model_ = std::move(model);
  int64_t bytes = 0;
  std::vector<int64_t> firsts;
  for (const TableSpec& table : spec.tables) {
    firsts.push_back(bytes);
    bytes += (table.rows + kLine - 1) / kLine * kLine;
  }
  RECMILL_ASSIGN_OR_RETURN(counter.counters_, Buffer::allocate(static_cast<size_t>(bytes)));
  for (size_t t = 0; t < spec.tables.size(); ++t) {
    Table& table = counter.tables_.emplace_back();
    table.name = spec.tables[t].name;
    table.rows = spec.tables[t].rows;
    table.counters = counter.counters_.as<uint8_t>().data() + firsts[t];
  }
  for (const FeatureSpec& feature : spec.features)
    counter.table_of_feature_.push_back(feature.table);
  return counter;
}

void AccessCounter::add(const SparseBatch& batch, ThreadPool& pool) {
  RECMILL_CHECK(batch.features.size() == table_of_feature_.size());
  std::vector<Task> whole(tables_.size());
  int64_t lookups = 0;
  for (size_t f = 0; f < batch.features.size(); ++f) {
    const SparseFeature& feature = batch.features[f];
    const auto table = static_cast<size_t>(table_of_feature_[f]);
    whole[table].table = table;
    whole[table].lookups += std::ssize(feature.rows);
    whole[table].features.emplace_back(feature.rows);
    lookups += std::ssize(feature.rows);
    tables_[table].sums.bags += bags_with_lookups(feature, batch.samples);
    tables_[table].sums.lookups += std::ssize(feature.rows);
  }
  samples_ += batch.samples;
  std::vector<Task> tasks;
  for (const Task& task : whole) {
    if (task.lookups == 0) continue;
    const int64_t threads = pool.threads();
    const int64_t parts =
        task.lookups < kSplitAbove ? 1 : (task.lookups * threads + lookups - 1) / lookups;
    for (int64_t part = 0; part < parts; ++part) {
      tasks.push_back(task);
      tasks.back().part = part;
      tasks.back().parts = parts;
    }
  }
  // The largest first, so that threads end at the same time.
  std::ranges::stable_sort(tasks, [](const Task& a, const Task& b) {
    return a.lookups / a.parts > b.lookups / b.parts;
  });
  run(tasks, pool);
}

void AccessCounter::run(std::span<Task> tasks, ThreadPool& pool) {
  pool.run(std::ssize(tasks), [&](int64_t t) {
    Task& task = tasks[static_cast<size_t>(t)];
    uint8_t* const counters = tables_[task.table].counters;
    for (const std::span<const int64_t> rows : task.features) {
      if (task.parts == 1) {
        count_rows(rows, counters, task.wrapped);
      } else {
        count_rows_of_part(rows, task.part, task.parts, counters, task.wrapped);
      }
    }
  });
  for (const Task& task : tasks) {
    for (const int64_t row : task.wrapped) tables_[task.table].wrapped.add(row, 1);
  }
}

std::vector<CountHistogram::Rows> AccessCounter::rows_by_count(size_t table) const {
  std::array<int64_t, 256> rows{};
  for (const uint8_t count : counters(table)) ++rows[count];
  std::map<int64_t, int64_t> wrapped;  // by count
  for (const auto& [row, times] : tables_[table].wrapped.ascending()) {
    const uint8_t count = tables_[table].counters[row];
    --rows[count];
    ++wrapped[times * 256 + count];
  }
  std::vector<CountHistogram::Rows> touched;
  for (int64_t count = 1; count < 256; ++count)
    if (rows[count] > 0) touched.push_back({count, rows[count]});
  for (const auto& [count, rows_of_it] : wrapped) touched.push_back({count, rows_of_it});
  return touched;
}

std::vector<int64_t> AccessCounter::rows_from(size_t table, int64_t least) const {
  RECMILL_CHECK(least >= 1);
  std::vector<int64_t> rows;
  const auto wrapped = tables_[table].wrapped.ascending();
  size_t next = 0;
  const std::span<const uint8_t> counts = counters(table);
  for (int64_t row = 0; row < std::ssize(counts); ++row) {
    int64_t count = counts[row];
    if (next < wrapped.size() && wrapped[next].first == row) count += 256 * wrapped[next++].second;
    if (count >= least) rows.push_back(row);
  }
  return rows;
}

std::span<const uint8_t> AccessCounter::counters(size_t table) const {
  return {tables_[table].counters, static_cast<size_t>(tables_[table].rows)};
}

void AccessCounter::merge_counters(size_t table, int64_t first_row,
                                   std::span<const uint8_t> counters) {
  Table& to = tables_[table];
  RECMILL_CHECK(first_row >= 0 && first_row + std::ssize(counters) <= to.rows);
  uint8_t* const own = to.counters + first_row;
  const auto size = std::ssize(counters);
  for (int64_t i = 0; i < size; i += kLine) {
    const int64_t end = std::min(size, i + kLine);
    unsigned wraps = 0;
    for (int64_t k = i; k < end; ++k) {
      const auto sum = static_cast<uint8_t>(own[k] + counters[k]);
      wraps |= sum < counters[k];
      own[k] = sum;
    }
    for (int64_t k = i; wraps != 0 && k < end; ++k) {
      if (own[k] < counters[k]) to.wrapped.add(first_row + k, 1);
    }
  }
}

void AccessCounter::merge_wrapped(size_t table,
                                  std::span<const std::pair<int64_t, int64_t>> wrapped) {
  for (const auto& [row, times] : wrapped) tables_[table].wrapped.add(row, times);
}

void AccessCounter::merge_sums(size_t table, const TableSums& sums) {
  tables_[table].sums.lookups += sums.lookups;
  tables_[table].sums.bags += sums.bags;
}

void AccessCounter::merge(const AccessCounter& other, ThreadPool& pool) {
  RECMILL_CHECK(other.model_ == model_ && other.tables_.size() == tables_.size());
  pool.run(std::ssize(tables_), [&](int64_t task) {
    const auto t = static_cast<size_t>(task);
    merge_counters(t, 0, other.counters(t));
    merge_wrapped(t, other.wrapped(t));
    merge_sums(t, other.sums(t));
  });
  merge_samples(other.samples_);
}

AccessCounts AccessCounter::finish(ThreadPool& pool, int64_t bytes) const {
  AccessCounts counts;
  counts.model = model_;
  counts.samples = samples_;
  int64_t rows = 0;
  for (const Table& table : tables_) rows += table.rows;
  if (bytes == 0) bytes = default_file_bytes(rows);
  const int64_t range_rows = range_rows_of(rows, bytes);
  std::vector<CountedTable> tables(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    tables[t].counters = counters(t);
    for (const auto& [row, times] : wrapped(t))
      tables[t].listed.push_back({row, times * 256 + tables_[t].counters[row]});
    TableCounts& table = counts.tables.emplace_back();
    table.table = tables_[t].name;
    table.rows = tables_[t].rows;
    table.lookups = tables_[t].sums.lookups;
    table.bags = tables_[t].sums.bags;
    table.range_rows = range_rows;
  }
  fill_counts(tables, bytes, counts, pool);
  return counts;
}

}  // namespace recmill::stats
