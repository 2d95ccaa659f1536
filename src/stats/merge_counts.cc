// SPDX-License-Identifier: Apache-2.0
#include "stats/merge_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "stats/count_shares.h"
#include "stats/counts_codec.h"
#include "stats/hot_threshold.h"

namespace recmill::stats {
namespace {

constexpr int64_t kNoRow = std::numeric_limits<int64_t>::max();

using Parts = std::vector<const TableCounts*>;  // the same table in each of several counts

/// What a row that is not listed may have been looked up at most.
int64_t most_of_tail(const TableCounts& table) {
  return std::max<int64_t>(0, std::ssize(table.tail_rows_by_count) - 1);
}

/// The hot rows of any part, each with its counts together.
void join_hot_rows(const Parts& parts, TableCounts& joined) {
  std::vector<size_t> next(parts.size());
  const auto row_of = [&](size_t p) {
    return next[p] < parts[p]->hot_rows.size() ? parts[p]->hot_rows[next[p]] : kNoRow;
  };
  while (true) {
    int64_t row = kNoRow;
    for (size_t p = 0; p < parts.size(); ++p) row = std::min(row, row_of(p));
    if (row == kNoRow) return;
    int64_t count = 0, lacking = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      const bool listed = row_of(p) == row;
      lacking += listed ? parts[p]->undercount : most_of_tail(*parts[p]);
      if (listed) count += parts[p]->hot_counts[next[p]++];
    }
    joined.hot_rows.push_back(row);
    joined.hot_counts.push_back(count);
    joined.undercount = std::max(joined.undercount, lacking);
  }
}

/// By the coarsest ranges of any part.
Status join_ranges(const Parts& parts, TableCounts& joined) {
  for (const TableCounts* part : parts)
    joined.range_rows = std::max(joined.range_rows, part->range_rows);
  joined.range_lookups.resize(static_cast<size_t>(ranges_of(joined.rows, joined.range_rows)));
  for (const TableCounts* part : parts) {
    if (joined.range_rows % part->range_rows != 0) {
      return Status::BadRequest(
          fmt::format("table '{}': ranges of {} rows are no part of those of {}", joined.table,
                      part->range_rows, joined.range_rows));
    }
    const int64_t together = joined.range_rows / part->range_rows;
    for (int64_t r = 0; r < std::ssize(part->range_lookups); ++r)
      joined.range_lookups[r / together] += part->range_lookups[r];
  }
  return {};
}

/// Takes `rows` rows from those of the highest counts.
void drop_highest(int64_t rows, std::vector<int64_t>& tail) {
  for (auto count = tail.rbegin(); rows > 0 && count != tail.rend(); ++count) {
    const int64_t dropped = std::min(rows, *count);
    *count -= dropped;
    rows -= dropped;
  }
}

/// Counts of as many rows added up, the coolest to the coolest: which row is which, a tail does not
/// say, and rows of one law are in one order.
std::vector<int64_t> add_tails(std::vector<int64_t> a, std::vector<int64_t> b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  std::vector<int64_t> sum(a.size() + b.size() - 1);
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int64_t rows = std::min(a[i], b[j]);
    sum[i + j] += rows;
    a[i] -= rows;
    b[j] -= rows;
    if (a[i] == 0) {
      ++i;
    } else {
      ++j;
    }
  }
  return sum;
}

/// Of rows that are hot in no part. Those hot elsewhere are taken to be the hottest of a tail.
void join_tails(const Parts& parts, TableCounts& joined) {
  const auto hot = std::ssize(joined.hot_rows);
  std::vector<std::vector<int64_t>> tails;
  for (const TableCounts* part : parts) {
    tails.push_back(part->tail_rows_by_count);
    drop_highest(hot - std::ssize(part->hot_rows), tails.back());
  }
  for (std::vector<int64_t>& tail : tails)
    joined.tail_rows_by_count = add_tails(std::move(joined.tail_rows_by_count), std::move(tail));
  if (hot == joined.rows) joined.tail_rows_by_count.clear();
}

Result<TableCounts> join(const Parts& parts) {
  TableCounts joined;
  joined.table = parts[0]->table;
  joined.rows = parts[0]->rows;
  for (const TableCounts* part : parts) {
    joined.lookups += part->lookups;
    joined.bags += part->bags;
  }
  join_hot_rows(parts, joined);
  RECMILL_RETURN_IF_ERROR(join_ranges(parts, joined));
  join_tails(parts, joined);
  return joined;
}

CountHistogram histogram_of(const TableCounts& table) {
  CountHistogram histogram;
  histogram.table = table.table;
  histogram.rows = table.rows;
  histogram.lookups = table.lookups;
  histogram.ranges = std::ssize(table.range_lookups);
  histogram.tail_length = std::max<int64_t>(1, std::ssize(table.tail_rows_by_count));
  TableCounts hot;
  hot.hot_counts = table.hot_counts;
  histogram.touched = rows_by_count(hot);
  histogram.tail_counts =
      std::ranges::count_if(table.tail_rows_by_count, [](int64_t rows) { return rows > 0; });
  return histogram;
}

/// Rows of fewer lookups than `threshold` go to their ranges and to the tail.
void cut(int64_t threshold, TableCounts& table) {
  std::vector<int64_t>& tail = table.tail_rows_by_count;
  size_t kept = 0;
  for (size_t i = 0; i < table.hot_rows.size(); ++i) {
    const int64_t row = table.hot_rows[i], count = table.hot_counts[i];
    if (count >= threshold) {
      table.hot_rows[kept] = row;
      table.hot_counts[kept++] = count;
      continue;
    }
    table.range_lookups[row / table.range_rows] += count;
    const auto most = static_cast<size_t>(count + table.undercount);
    if (tail.size() <= most) tail.resize(most + 1);
    ++tail[static_cast<size_t>(count)];
  }
  table.hot_rows.resize(kept);
  table.hot_counts.resize(kept);
  if (kept == 0) table.undercount = 0;
}

Status check_same_model(std::span<const AccessCounts> counts) {
  if (counts.empty()) return Status::BadRequest("there are no counts to merge");
  const auto same = [](const TableCounts& a, const TableCounts& b) { return a.rows == b.rows; };
  for (const AccessCounts& other : counts) {
    if (other.model == counts[0].model && std::ranges::equal(other.tables, counts[0].tables, same))
      continue;
    return Status::BadRequest(
        fmt::format("counts of different models or data sets say nothing together: their digests "
                    "are {} and {}",
                    counts[0].model, other.model));
  }
  return {};
}

}  // namespace

Result<AccessCounts> merge_counts(std::span<const AccessCounts> counts, int64_t bytes) {
  RECMILL_RETURN_IF_ERROR(check_same_model(counts));
  AccessCounts merged;
  merged.model = counts[0].model;
  for (const AccessCounts& part : counts) merged.samples += part.samples;
  int64_t rows = 0;
  std::vector<CountHistogram> histograms;
  for (size_t t = 0; t < counts[0].tables.size(); ++t) {
    Parts parts;
    for (const AccessCounts& part : counts) parts.push_back(&part.tables[t]);
    RECMILL_ASSIGN_OR_RETURN(TableCounts joined, join(parts));
    rows += joined.rows;
    histograms.push_back(histogram_of(joined));
    merged.tables.push_back(std::move(joined));
  }
  const int64_t threshold = hot_threshold(histograms, bytes > 0 ? bytes : default_file_bytes(rows));
  for (TableCounts& table : merged.tables) cut(threshold, table);
  return merged;
}

}  // namespace recmill::stats
