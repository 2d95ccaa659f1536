// SPDX-License-Identifier: Apache-2.0
// The columns of a table's access counts as bytes: docs/formats/access_counts.md. Their size
// follows from how many rows have which count, so that what fits into a file is known before it is
// written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "schema/access_counts.h"

namespace recmill::stats {

/// Lookups of a table are below this.
inline constexpr int64_t kMostLookups = int64_t{1} << 56;
/// Rows of a table are at most this.
inline constexpr int64_t kMostRows = int64_t{1} << 48;

/// Ranges of a table, and counts of its tail, are at most this many.
inline constexpr int64_t kMostListed = int64_t{1} << 24;

constexpr int64_t ranges_of(int64_t rows, int64_t range_rows) {
  return rows == 0 ? 0 : (rows - 1) / range_rows + 1;
}

/// Bits of `count` >= 1, as Elias's gamma code has it.
constexpr int64_t count_bits(int64_t count) {
  int64_t bits = 1;
  for (; count > 1; count >>= 1) bits += 2;
  return bits;
}

/// Bytes of an ascending list of `held` of `rows` rows.
int64_t row_list_bytes(int64_t held, int64_t rows);
/// At most the bytes of a list of `length` numbers of which `held` are above 0 and make `sum`.
int64_t most_sparse_bytes(int64_t held, int64_t length, int64_t sum);

/// What must be known of a table to read its columns.
struct ColumnSizes {
  int64_t rows = 0;
  int64_t hot = 0;          // rows listed
  int64_t least = 1;        // of their counts
  int64_t ranges = 0;       // length of range_lookups
  int64_t tail_counts = 0;  // length of tail_rows_by_count
};
ColumnSizes sizes_of(const TableCounts& table);

/// hot_rows, hot_counts, range_lookups and tail_rows_by_count, one after the other.
std::vector<std::byte> encode_columns(const TableCounts& table);
/// Fills those four of `table`. An error says what is wrong: other lists than were written may
/// pass, but rows ascend and lie in the table, and counts and lookups are in their bounds.
Status decode_columns(const ColumnSizes& sizes, std::span<const std::byte> bytes,
                      TableCounts& table);

}  // namespace recmill::stats
