// SPDX-License-Identifier: Apache-2.0
// How often the rows of a model's tables are looked up, as a value: measured once by stats/, read
// by every decider that asks which rows are hot. Its file is described in
// docs/formats/access_counts.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace recmill {

/// Exact for hot rows, by ranges of rows for the others. Which rows are hot: those of the most
/// lookups, as many as the file's size allows.
struct TableCounts {
  std::string table;
  int64_t rows = 0;
  int64_t lookups = 0;              // of all rows
  int64_t bags = 0;                 // that had a lookup, of all features of the table
  std::vector<int64_t> hot_rows;    // ascending
  std::vector<int64_t> hot_counts;  // beside, lookups, each above 0
  /// A count in hot_counts may be low by this much where counts that had been cut already were
  /// merged; else 0.
  int64_t undercount = 0;
  int64_t range_rows = 1;  // rows of a range, a power of two; the last may have fewer
  /// [ceil(rows / range_rows)], of its rows that are not hot, and what hot_counts lack: with them
  /// they are always `lookups`.
  std::vector<int64_t> range_lookups;
  /// [c]: rows that are not hot and were looked up c times; their sum is rows - hot_rows.size().
  /// None of them was looked up size() times or more. Where cut counts were merged, an estimate.
  std::vector<int64_t> tail_rows_by_count;

  bool operator==(const TableCounts&) const = default;
};

struct AccessCounts {
  /// A digest of what rows mean: columns, how ids become rows, sizes of tables. Counts of another
  /// one say nothing.
  std::string model;
  int64_t samples = 0;
  std::vector<TableCounts> tables;  // in the order of ModelSpec::tables
  bool operator==(const AccessCounts&) const = default;
};

}  // namespace recmill
