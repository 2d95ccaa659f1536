// SPDX-License-Identifier: Apache-2.0
// Files of access counts: other bytes than those that were written never pass, and columns of any
// bytes, which a checksum would hide, are refused or are counts that are written as they were read.
#include "base/testing/faulty_files.h"
#include "base/testing/fuzz.h"
#include "stats/access_counts_file.h"
#include "stats/counts_codec.h"

namespace recmill {
namespace {

TableCounts small_table() {
  TableCounts table;
  table.table = "t";
  table.rows = 1000;
  table.lookups = 5 + 300 + 2 + 6;
  table.bags = 9;
  table.hot_rows = {3, 4, 999};
  table.hot_counts = {5, 300, 2};
  table.range_rows = 64;
  table.range_lookups.resize(16);
  table.range_lookups[7] = 6;
  table.tail_rows_by_count = {991, 6};
  return table;
}

AccessCounts small_counts() {
  AccessCounts counts;
  counts.model = "digest";
  counts.samples = 9;
  counts.tables = {small_table(), small_table()};
  return counts;
}

void feed_file(const std::string& bytes) {
  FaultyFiles files;
  ThreadPool pool(1);
  RECMILL_CHECK(stats::write_counts(small_counts(), "x.counts", files, pool).ok());
  std::string& content = files.content("x.counts");
  const std::string written = std::exchange(content, bytes);
  const auto read = stats::read_counts("x.counts", "", files, pool);
  RECMILL_CHECK(bytes != written || (read.ok() && *read == small_counts()));
  if (!read.ok()) return;
  RECMILL_CHECK(stats::write_counts(*read, "y.counts", files, pool).ok());
  RECMILL_CHECK(*stats::read_counts("y.counts", "", files, pool) == *read);
}

void feed_columns(const std::string& bytes) {
  TableCounts table = small_table();
  const stats::ColumnSizes sizes = stats::sizes_of(table);
  if (!stats::decode_columns(sizes, std::as_bytes(std::span(bytes)), table).ok()) return;
  TableCounts again = table;
  stats::ColumnSizes found = stats::sizes_of(table);
  RECMILL_CHECK(found.hot == sizes.hot && found.ranges == sizes.ranges);
  RECMILL_CHECK(stats::decode_columns(found, stats::encode_columns(table), again).ok());
  RECMILL_CHECK(again == table);
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  FaultyFiles files;
  ThreadPool pool(1);
  RECMILL_CHECK(stats::write_counts(small_counts(), "x.counts", files, pool).ok());
  const auto columns = stats::encode_columns(small_table());
  return {files.content("x.counts"),
          std::string(reinterpret_cast<const char*>(columns.data()), columns.size())};
}

void fuzz::feed(const std::string& bytes) {
  feed_file(bytes);
  feed_columns(bytes);
}

}  // namespace recmill
