// SPDX-License-Identifier: Apache-2.0
// A data set as one sequence of rows in a seeded order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "batch/column_batch.h"
#include "schema/column_spec.h"

namespace recmill::reader {

/// Counts of what was passed over, for the summary.
struct ReaderCounts {
  int64_t rows = 0;         // handed out
  int64_t bad_rows = 0;     // skipped under on_bad_row = "skip"
  int64_t passed_over = 0;  // behaviour logs: events outside [first_time, last_time]
  int64_t row_groups = 0;   // files of row groups: how often one was begun to be decoded
};

/// What ColumnBatch::keys are of.
struct KeySource {
  std::vector<std::string> files;  // by their numbers in it; empty: rows are of no file
  bool integers = false;           // the cells of the column that was named are integers
};

/// Consecutive positions of an order.
struct RowRange {
  int64_t first = 0, count = 0;
  bool operator==(const RowRange&) const = default;
};

/// Rows in an order that is a function of the data, the options, the seed and the epoch: never of
/// the number of ranks or threads, nor of what was read before. Position p of epoch e is one
/// certain row. Reading on from the last position is fast (threads read and parse ahead); any other
/// position is a seek. Memory is bounded by the options, not by the data.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual const DataSchema& schema() const = 0;
  /// Rows in an epoch (text files are counted once and indexed in the cache folder). May be asked
  /// for while another thread reads.
  virtual Result<int64_t> rows() = 0;
  /// Replaces `batch` by rows [first, first + count) of the order of `epoch`; fewer at the end of
  /// the data, none after it. Vectors of `batch` are reused. Errors name file and line.
  virtual Status read(int64_t epoch, int64_t first, int64_t count, ColumnBatch& batch) = 0;
  virtual ReaderCounts counts() const = 0;
  /// For DataOptions::scored. Readers of rows that are in no file leave ColumnBatch::keys empty.
  virtual KeySource key_source() const { return {}; }

  /// Positions of an unshuffled order from which rows can be read without those before them being
  /// decoded: ascending, from 0. None: any position is one.
  virtual Result<std::vector<int64_t>> starts() { return std::vector<int64_t>(); }
  /// For only_rows() (row_blocks.h), once, before the first read() of a reader that is not
  /// shuffled: its rows are from now on those of `ranges` alone, each of which begins at one of
  /// starts() and ends before one. False where starts() are none: who asks seeks.
  virtual Result<bool> keep_only(std::span<const RowRange> /*ranges*/) { return false; }
};

}  // namespace recmill::reader
