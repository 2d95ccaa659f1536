// SPDX-License-Identifier: Apache-2.0
#include "stats/count_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/json/json.h"

namespace recmill::stats {
namespace {

/// The least whole number of rows that is `share` of them; a rounding error is no row.
int64_t part_of(int64_t rows, double share) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(rows) * share - 1e-6));
}

}  // namespace

std::vector<CountHistogram::Rows> rows_by_count(const TableCounts& table) {
  // Most counts are small, and there are many: they are counted, and only the others sorted.
  constexpr int64_t kSmall = 1 << 16;
  std::vector<int64_t> small(kSmall), large;
  for (const int64_t count : table.hot_counts) {
    if (count < kSmall) {
      ++small[static_cast<size_t>(count)];
    } else {
      large.push_back(count);
    }
  }
  std::vector<CountHistogram::Rows> rows;
  const std::vector<int64_t>& tail = table.tail_rows_by_count;
  const auto of_tail = [&](int64_t count) {
    return count < std::ssize(tail) ? tail[static_cast<size_t>(count)] : 0;
  };
  for (int64_t count = 1; count < kSmall; ++count) {
    const int64_t all = small[static_cast<size_t>(count)] + of_tail(count);
    if (all > 0) rows.push_back({count, all});
  }
  for (int64_t count = kSmall; count < std::ssize(tail); ++count)
    large.insert(large.end(), static_cast<size_t>(of_tail(count)), count);
  std::ranges::sort(large);
  for (const int64_t count : large) {
    if (rows.empty() || rows.back().count != count) rows.push_back({count, 0});
    ++rows.back().rows;
  }
  return rows;
}

double share_of(int64_t hottest, const std::vector<CountHistogram::Rows>& rows, int64_t lookups) {
  int64_t taken = 0;
  for (auto some = rows.rbegin(); some != rows.rend() && hottest > 0; ++some) {
    const int64_t of_these = std::min(hottest, some->rows);
    taken += of_these * some->count;
    hottest -= of_these;
  }
  return lookups > 0 ? static_cast<double>(taken) / static_cast<double>(lookups) : 0.0;
}

std::vector<TableShares> shares_of(const AccessCounts& counts) {
  std::vector<TableShares> all;
  for (const TableCounts& table : counts.tables) {
    const std::vector<CountHistogram::Rows> rows = rows_by_count(table);
    const auto share = [&](double of_rows) {
      return share_of(part_of(table.rows, of_rows), rows, table.lookups);
    };
    TableShares& shares = all.emplace_back();
    shares.table = table.table;
    shares.rows = table.rows;
    shares.lookups = table.lookups;
    shares.undercount = table.undercount;
    for (const auto& [count, some] : rows) shares.touched += some;
    shares.top_0_1_percent = share(0.001);
    shares.top_1_percent = share(0.01);
    shares.top_5_percent = share(0.05);
  }
  return all;
}

Json to_json(const std::vector<TableShares>& shares) {
  Json tables = Json::array();
  for (const TableShares& table : shares) {
    tables.push_back({{"table", table.table},
                      {"rows", table.rows},
                      {"lookups", table.lookups},
                      {"touched", table.touched},
                      {"undercount", table.undercount},
                      {"top_0_1_percent", table.top_0_1_percent},
                      {"top_1_percent", table.top_1_percent},
                      {"top_5_percent", table.top_5_percent}});
  }
  return tables;
}

std::string table_of(const std::vector<TableShares>& shares) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{:<20}{:>14}{:>14}{:>14}{:>11}{:>9}{:>9}\n", "table", "rows", "lookups",
                 "touched", "top 0.1 %", "top 1 %", "top 5 %");
  for (const TableShares& table : shares) {
    fmt::format_to(out, "{:<20}{:>14}{:>14}{:>14}{:>9.1f} %{:>7.1f} %{:>7.1f} %\n", table.table,
                   table.rows, table.lookups, table.touched, 100 * table.top_0_1_percent,
                   100 * table.top_1_percent, 100 * table.top_5_percent);
  }
  return fmt::to_string(text);
}

}  // namespace recmill::stats
