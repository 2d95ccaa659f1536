// SPDX-License-Identifier: Apache-2.0
// Which rows are hot: those of at least so many lookups, in whatever table, that their list fits
// into a file of so many bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace recmill::stats {

/// Rows of this many lookups are hot whatever the file's size.
inline constexpr int64_t kAlwaysHot = int64_t{1} << 20;

/// How often the rows of a table are looked up, without which rows they are.
struct CountHistogram {
  struct Rows {
    int64_t count = 0, rows = 0;
  };
  std::string table;
  int64_t rows = 0;     // of the table
  int64_t lookups = 0;  // of all of them
  int64_t ranges = 0;
  std::vector<Rows> touched;  // counts ascending, each above 0 and once; rows that may be hot
  // Of rows that were cut before: their different counts, and the highest and one.
  int64_t tail_counts = 0, tail_length = 1;
};

/// 64 MB for 242.5 million rows of all tables, 256 MB for 2.5 billion, and as the line through both
/// for others: models of up to some 10 million rows list every row that is touched.
int64_t default_file_bytes(int64_t rows);

/// Rows of a range: a power of two, the same for all tables of a model with `rows` rows. Ranges are
/// at most 131,072, fewer where they would take more than an eighth of a file of `bytes`; and one
/// more a table.
int64_t range_rows_of(int64_t rows, int64_t bytes);

/// The least threshold >= 1 whose file has at most `bytes`; where none has, kAlwaysHot.
int64_t hot_threshold(std::span<const CountHistogram> tables, int64_t bytes);

}  // namespace recmill::stats
