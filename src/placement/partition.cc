// SPDX-License-Identifier: Apache-2.0
#include "placement/partition.h"

#include <algorithm>
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
  for (TableRows& rows : tables) list_rows(problem, rows, thresholds);
  for (const TableRows& rows : tables) cut_ranges(problem, rows, thresholds);
}

// Lists rows as long as they are denser in accesses than a partition at both of its bounds.
void Partitioning::list_rows(const Problem& problem, TableRows& rows,
                             const Thresholds& thresholds) {
  const double most_fetched = thresholds.access * all_.fetched;
  const double most_memory =
      thresholds.listed_bytes > 0 ? thresholds.listed_bytes : thresholds.memory * all_.memory;
  const double density = most_fetched / std::max(thresholds.memory * all_.memory, 1e-300);
  const auto share =
      static_cast<int64_t>(thresholds.listed_share * static_cast<double>(rows.counts.rows));
  const auto most =
      std::min<int64_t>(std::max(share, kAlwaysListed), static_cast<int64_t>(rows.order.size()));
  Partition partition{rows.table, {}, 0, 0, {}};
  int64_t first = 0, at = 0;
  const auto close = [&] {
    if (at == first) return;
    partition.listed = rows.order.subspan(first, at - first);
    listed_ += partition.load;
    partitions_.push_back(partition);
    partition.load = {};
    first = at;
  };
  for (; at < most; ++at) {
    const Load row = rows.of_hot(problem, rows.counts.hot_counts[rows.order[at]]);
    if (row.fetched < density * row.memory) break;
    if (partition.load.fetched + row.fetched > most_fetched ||
        partition.load.memory + row.memory > most_memory)
      close();
    partition.load += row;
    rows.gone[rows.order[at]] = true;
  }
  close();
}

void Partitioning::cut_ranges(const Problem& problem, const TableRows& rows,
                              const Thresholds& thresholds) {
  const TableCounts& counts = rows.counts;
  const double most_fetched = thresholds.access * all_.fetched;
  const double most_memory = thresholds.memory * all_.memory;
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
