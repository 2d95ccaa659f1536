// SPDX-License-Identifier: Apache-2.0
#include "placement/oper/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace recmill::placement {
namespace {

constexpr int64_t kSmallCounts = 65536;

// By counting where counts are small, which most are.
HotOrder hot_order(const std::vector<int64_t>& counts) {
  std::vector<int64_t> begins(kSmallCounts + 1);
  HotOrder large;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] >= kSmallCounts) {
      large.push_back(static_cast<int64_t>(i));
    } else {
      ++begins[kSmallCounts - 1 - counts[i] + 1];
    }
  }
  std::ranges::stable_sort(large, std::greater<>(), [&](int64_t i) { return counts[i]; });
  begins[0] = static_cast<int64_t>(large.size());
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  HotOrder order = std::move(large);
  order.resize(counts.size());
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] < kSmallCounts)
      order[begins[kSmallCounts - 1 - counts[i]]++] = static_cast<int64_t>(i);
  return order;
}

}  // namespace

std::vector<HotOrder> hot_orders(const AccessCounts& counts) {
  std::vector<HotOrder> orders;
  for (const TableCounts& table : counts.tables) orders.push_back(hot_order(table.hot_counts));
  return orders;
}

struct Partitioning::TableRows {
  int table;
  const TableCounts& counts;
  RowUses uses;
  std::span<const int64_t> order;  // hot rows that are not taken
  std::vector<bool> gone;          // [hot rows]: taken or listed
  Load of_hot(const Problem& problem, int64_t count) const {
    return load_of(problem, problem.tables[table], 1, uses.of(count));
  }
};

Partitioning::Partitioning(const Problem& problem, const std::vector<HotOrder>& orders,
                           const Thresholds& thresholds,
                           const std::vector<std::vector<bool>>& taken) {
  std::vector<TableRows> tables;
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const TableCounts& counts = problem.counts.tables[t];
    tables.push_back({static_cast<int>(t), counts,
                      RowUses(counts, problem.counts.samples, problem.samples, problem.devices()),
                      orders[t],
                      taken.empty() ? std::vector<bool>(counts.hot_rows.size()) : taken[t]});
    const TableRows& rows = tables.back();
    RowUse use;
    int64_t hot = 0, tail = 0;
    for (const int64_t i : rows.order) {
      use += rows.uses.of(counts.hot_counts[i]);
      ++hot;
    }
    for (const int64_t lookups : counts.range_lookups) tail += lookups;
    use += rows.uses.of_tail_lookup() * static_cast<double>(tail);
    const auto cold = counts.rows - static_cast<int64_t>(counts.hot_rows.size());
    all_ += load_of(problem, problem.tables[t], static_cast<double>(hot + cold), use);
    if (!rows.order.empty()) {
      const Load first = rows.of_hot(problem, counts.hot_counts[rows.order[0]]);
      hottest_row_ = std::max(hottest_row_, first.fetched);
    }
  }
  listed_rows_.resize(tables.size());
  const double density = least_density(problem, tables, thresholds);
  for (TableRows& rows : tables) list_rows(problem, rows, density, thresholds);
  for (const TableRows& rows : tables) cut_ranges(problem, rows, thresholds);
}

// Bytes fetched a byte of memory that a row has at least where it is listed. Densities are counted
// in steps of an eighth of an octave.
double Partitioning::least_density(const Problem& problem, const std::vector<TableRows>& tables,
                                   const Thresholds& thresholds) const {
  constexpr int kSteps = 8, kBuckets = 2048;
  const double average = all_.fetched / std::max(all_.memory, 1e-300);
  const auto bucket_of = [&](const Load& row) {
    const double octaves = std::log2(row.fetched / std::max(row.memory * average, 1e-300));
    return static_cast<int>(std::clamp(octaves * kSteps + kBuckets / 2.0, 0.0, kBuckets - 1.0));
  };
  std::vector<int64_t> rows(kBuckets);
  int64_t most = 0;
  for (const TableRows& table : tables) {
    most += table.counts.rows;
    int64_t last_count = -1;
    int bucket = 0;
    for (const int64_t i : table.order) {
      const int64_t count = table.counts.hot_counts[i];
      if (count != last_count) bucket = bucket_of(table.of_hot(problem, count));
      last_count = count;
      ++rows[bucket];
    }
  }
  most = static_cast<int64_t>(thresholds.listed_share * static_cast<double>(most));
  int least = kBuckets;
  while (least > 0 && rows[least - 1] <= most) most -= rows[--least];
  const double listed = least == 0 ? 0 : average * std::exp2((least - kBuckets / 2.0) / kSteps);
  const double dense = average * thresholds.access / thresholds.memory;
  return thresholds.list_dense_alone ? std::max(listed, dense) : listed;
}

// Rows that follow each other in their order go to as many partitions as there are devices, one to
// each in turn: so these are alike, and what is wrong in counts is wrong in all of them.
void Partitioning::list_rows(const Problem& problem, TableRows& rows, double density,
                             const Thresholds& thresholds) {
  const double most_fetched = thresholds.access * all_.fetched;
  const double most_memory =
      thresholds.listed_bytes > 0 ? thresholds.listed_bytes : thresholds.memory * all_.memory;
  const int devices = problem.devices();
  HotOrder& listed = listed_rows_[rows.table];
  listed.reserve(rows.order.size());
  std::vector<Load> loads;  // of the group's rows
  Load group;
  const auto close = [&] {
    deal(rows, loads, static_cast<int>(std::min<size_t>(loads.size(), devices)));
    loads.clear();
    group = {};
  };
  for (const int64_t i : rows.order) {
    const Load row = rows.of_hot(problem, rows.counts.hot_counts[i]);
    if (row.fetched < density * row.memory) break;
    // The heaviest of a group's partitions is heavier than the average by a row at most.
    const Load& heaviest = loads.empty() ? row : loads[0];
    if (group.fetched + row.fetched > devices * (most_fetched - heaviest.fetched) ||
        group.memory + row.memory > devices * (most_memory - heaviest.memory))
      close();
    rows.gone[i] = true;
    listed.push_back(i);
    loads.push_back(row);
    group += row;
  }
  close();
}

// The rows that were listed last, with these loads, into so many partitions.
void Partitioning::deal(const TableRows& rows, const std::vector<Load>& loads, int parts) {
  if (loads.empty()) return;
  HotOrder& listed = listed_rows_[rows.table];
  const size_t first = listed.size() - loads.size();
  std::vector<HotOrder> dealt(parts);
  std::vector<Load> sums(parts);
  for (size_t k = 0; k < loads.size(); ++k) {
    const auto least = std::ranges::min_element(sums, {}, &Load::fetched) - sums.begin();
    dealt[least].push_back(listed[first + k]);
    sums[least] += loads[k];
  }
  auto to = listed.begin() + static_cast<int64_t>(first);
  for (int part = 0; part < parts; ++part) {
    const auto at = static_cast<size_t>(to - listed.begin());
    to = std::ranges::copy(dealt[part], to).out;
    listed_ += sums[part];
    partitions_.push_back(
        {rows.table, std::span(listed).subspan(at, dealt[part].size()), 0, 0, sums[part]});
  }
}

void Partitioning::cut_ranges(const Problem& problem, const TableRows& rows,
                              const Thresholds& thresholds) {
  const TableCounts& counts = rows.counts;
  const double most_fetched = thresholds.access * all_.fetched;
  // As many equal parts for each device.
  const auto gone = std::ranges::count(rows.gone, true);
  const double memory =
      static_cast<double>((counts.rows - gone) * problem.tables[rows.table].row_bytes);
  const double parts =
      problem.devices() *
      std::max(std::ceil(memory / (problem.devices() * thresholds.memory * all_.memory)), 1.0);
  const double most_memory = memory / parts * (1 + 1e-9);
  Partition partition{rows.table, {}, 0, 0, {}};
  size_t hot = 0;
  for (size_t range = 0; range < counts.range_lookups.size(); ++range) {
    const int64_t begin = static_cast<int64_t>(range) * counts.range_rows;
    const int64_t end = std::min(begin + counts.range_rows, counts.rows);
    int64_t left = end - begin;
    RowUse use = rows.uses.of_tail_lookup() * static_cast<double>(counts.range_lookups[range]);
    for (; hot < counts.hot_rows.size() && counts.hot_rows[hot] < end; ++hot) {
      if (rows.gone[hot]) {
        --left;
      } else {
        use += rows.uses.of(counts.hot_counts[hot]);
      }
    }
    const Load load = load_of(problem, problem.tables[rows.table], static_cast<double>(left), use);
    // What does not fit into the partition that is open goes into others; rows of a range are taken
    // for equal.
    for (int64_t from = begin; from < end;) {
      const double room =
          std::min(load.memory > 0 ? (most_memory - partition.load.memory) / load.memory : 1.0,
                   load.fetched > 0 ? (most_fetched - partition.load.fetched) / load.fetched : 1.0);
      const double rows_left = std::clamp(room, 0.0, 1.0) * static_cast<double>(end - begin);
      int64_t to = std::min(from + static_cast<int64_t>(rows_left), end);
      if (to == from && partition.end > partition.begin) {
        partitions_.push_back(partition);
        partition = {rows.table, {}, from, from, {}};
        continue;
      }
      to = std::max(to, from + 1);  // one row at least
      partition.load += load * (static_cast<double>(to - from) / static_cast<double>(end - begin));
      partition.end = from = to;
    }
  }
  if (partition.end > partition.begin) partitions_.push_back(partition);
}

}  // namespace recmill::placement
