// SPDX-License-Identifier: Apache-2.0
#include "stats/counted_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "stats/counts_codec.h"
#include "stats/hot_threshold.h"

namespace recmill::stats {
namespace {

constexpr int64_t kChunkRows = int64_t{1} << 20;
constexpr int64_t kWord = 8;  // counters that are looked at together

/// Some rows of a table; what is found in one depends on no other.
struct RowChunk {
  size_t table = 0;
  int64_t first = 0, end = 0;                // first: that of a range
  std::array<int64_t, 256> rows_by_count{};  // of rows that are not listed; [0] is unset
  int64_t first_hot = 0;                     // in the table's hot rows

  std::span<const RowCount> listed(const CountedTable& table) const;
  void count_rows(const CountedTable& table);
  int64_t hot_rows(const CountedTable& table, int64_t threshold) const;
  /// Writes its part of the hot rows, and its ranges.
  void fill(const CountedTable& table, int64_t threshold, TableCounts& counts) const;
};

/// Calls visit(first, end) for each group of up to kWord rows of [first, end) of which one has a
/// counter above 0, or is at least `least`, which visit may raise.
template <typename Visit>
void visit_touched(std::span<const uint8_t> counters, int64_t first, int64_t end,
                   const int64_t& least, const Visit& visit) {
  const uint8_t* const data = counters.data();
  int64_t row = first;
  for (; row + kWord <= end; row += kWord) {
    uint64_t word;
    std::memcpy(&word, data + row, sizeof word);
    if (word != 0 || least < row + kWord) visit(row, row + kWord);
  }
  if (row < end) visit(row, end);
}

std::span<const RowCount> RowChunk::listed(const CountedTable& table) const {
  const auto from = std::ranges::lower_bound(table.listed, first, {}, &RowCount::row);
  const auto to = std::ranges::lower_bound(table.listed, end, {}, &RowCount::row);
  return {from, to};
}

void RowChunk::count_rows(const CountedTable& table) {
  const int64_t none = std::numeric_limits<int64_t>::max();
  visit_touched(table.counters, first, end, none, [&](int64_t from, int64_t to) {
    for (int64_t row = from; row < to; ++row) ++rows_by_count[table.counters[row]];
  });
  for (const RowCount& row : listed(table)) --rows_by_count[table.counters[row.row]];
  rows_by_count[0] = 0;
}

int64_t RowChunk::hot_rows(const CountedTable& table, int64_t threshold) const {
  int64_t hot = std::ranges::count_if(
      listed(table), [threshold](const RowCount& row) { return row.count >= threshold; });
  for (int64_t count = std::max<int64_t>(1, threshold); count < 256; ++count)
    hot += rows_by_count[count];
  return hot;
}

void RowChunk::fill(const CountedTable& table, int64_t threshold, TableCounts& counts) const {
  const std::span<const RowCount> of_list = listed(table);
  size_t next = 0;
  const auto next_row = [&] {
    return next < of_list.size() ? of_list[next].row : std::numeric_limits<int64_t>::max();
  };
  int64_t next_listed = next_row(), hot = first_hot;
  visit_touched(table.counters, first, end, next_listed, [&](int64_t from, int64_t to) {
    for (int64_t row = from; row < to; ++row) {
      int64_t count = table.counters[row];
      if (row == next_listed) {
        count = of_list[next++].count;
        next_listed = next_row();
      }
      if (count == 0) continue;
      if (count < threshold) {
        counts.range_lookups[row / counts.range_rows] += count;
        continue;
      }
      counts.hot_rows[hot] = row;
      counts.hot_counts[hot++] = count;
    }
  });
}

std::vector<RowChunk> row_chunks(std::span<const CountedTable> tables, int64_t range_rows) {
  const int64_t step = std::max<int64_t>(1, kChunkRows / range_rows) * range_rows;
  std::vector<RowChunk> chunks;
  for (size_t t = 0; t < tables.size(); ++t) {
    const auto rows = std::ssize(tables[t].counters);
    for (int64_t first = 0; first < rows; first += step) {
      RowChunk& chunk = chunks.emplace_back();
      chunk.table = t;
      chunk.first = first;
      chunk.end = std::min(rows, first + step);
    }
  }
  return chunks;
}

std::vector<CountHistogram::Rows> touched_rows(const CountedTable& table,
                                               std::span<const RowChunk> chunks) {
  std::vector<CountHistogram::Rows> touched;
  for (int64_t count = 1; count < 256; ++count) {
    int64_t rows = 0;
    for (const RowChunk& chunk : chunks) rows += chunk.rows_by_count[count];
    if (rows > 0) touched.push_back({count, rows});
  }
  std::vector<int64_t> large;
  for (const RowCount& row : table.listed) large.push_back(row.count);
  std::ranges::sort(large);
  for (const int64_t count : large) {
    if (touched.empty() || touched.back().count != count) touched.push_back({count, 0});
    ++touched.back().rows;
  }
  return touched;
}

/// Rows of a table that are not hot, by their count.
std::vector<int64_t> tail_of(const CountHistogram& table, int64_t threshold) {
  std::vector<int64_t> tail(1);
  int64_t touched = 0;
  for (const auto& [count, rows] : table.touched) {
    touched += rows;
    if (count >= threshold) continue;
    tail.resize(static_cast<size_t>(count) + 1);
    tail.back() = rows;
  }
  tail[0] = table.rows - touched;
  if (tail.size() == 1 && tail[0] == 0) tail.clear();
  return tail;
}

}  // namespace

void fill_counts(std::span<const CountedTable> tables, int64_t bytes, AccessCounts& counts,
                 ThreadPool& pool) {
  RECMILL_CHECK(tables.size() == counts.tables.size());
  std::vector<RowChunk> chunks =
      row_chunks(tables, counts.tables.empty() ? 1 : counts.tables[0].range_rows);
  const auto for_chunks = [&](const auto& body) {
    pool.run(std::ssize(chunks), [&](int64_t c) {
      RowChunk& chunk = chunks[static_cast<size_t>(c)];
      body(chunk, tables[chunk.table], counts.tables[chunk.table]);
    });
  };
  for_chunks(
      [](RowChunk& chunk, const CountedTable& table, TableCounts&) { chunk.count_rows(table); });
  std::vector<CountHistogram> histograms;
  for (size_t t = 0, first = 0; t < tables.size(); ++t) {
    size_t end = first;
    while (end < chunks.size() && chunks[end].table == t) ++end;
    TableCounts& table = counts.tables[t];
    table.range_lookups.resize(static_cast<size_t>(ranges_of(table.rows, table.range_rows)));
    histograms.push_back({table.table, table.rows, table.lookups, std::ssize(table.range_lookups),
                          touched_rows(tables[t], std::span(chunks).subspan(first, end - first))});
    first = end;
  }
  const int64_t threshold = hot_threshold(histograms, bytes);
  std::vector<int64_t> hot(tables.size());
  for (RowChunk& chunk : chunks) {
    chunk.first_hot = hot[chunk.table];
    hot[chunk.table] += chunk.hot_rows(tables[chunk.table], threshold);
  }
  pool.run(std::ssize(tables), [&](int64_t task) {
    const auto t = static_cast<size_t>(task);
    counts.tables[t].hot_rows.resize(static_cast<size_t>(hot[t]));
    counts.tables[t].hot_counts.resize(static_cast<size_t>(hot[t]));
    counts.tables[t].tail_rows_by_count = tail_of(histograms[t], threshold);
  });
  for_chunks([threshold](RowChunk& chunk, const CountedTable& table, TableCounts& to) {
    chunk.fill(table, threshold, to);
  });
}

}  // namespace recmill::stats
