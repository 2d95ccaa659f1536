// SPDX-License-Identifier: Apache-2.0
// The seam to where an embedding server has its rows: in memory, or on a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "table/home/row_home.h"

namespace recmill::table {

/// Rows that were put ("touched"), and images of them as after steps. Calls come one at a time, and
/// name rows that are within their tables. After an error only its destructor is called.
class ServedRows {
 public:
  virtual ~ServedRows() = default;

  /// `touched` [rows]: those whose records are set; the others are initial ones.
  virtual Status read(const FetchedRows& rows, std::vector<bool>& touched) = 0;
  /// Puts of a row come in the order of their steps.
  virtual Status put(std::span<const PutRows> rows, int64_t step) = 0;
  /// Makes an image as after `step`, which is later than those of all others, and than no put.
  virtual Status cut(int64_t step) = 0;
  /// Sets rows of an image as they are after its step, and with them later images and the rows
  /// themselves, but where they were put at a later step.
  virtual Status change(int64_t step, std::span<const PutRows> rows) = 0;
  virtual Status drop(int64_t step) = 0;
  /// All rows are as after `step`, whose image stays, alone.
  virtual Status go_back(int64_t step) = 0;

  struct ImageRows {
    std::vector<int64_t> rows;       // touched ones, ascending
    std::vector<std::byte> records;  // one behind the other
    int64_t next = -1;               // where to go on; negative: the table has no more
  };
  /// Of an image, from row `first` on, so many bytes of records or a little more.
  virtual Result<ImageRows> read_image(int64_t step, int table, int64_t first, size_t bytes) = 0;

  struct Sizes {
    int64_t touched_rows = 0;
    int64_t bytes = 0;        // of memory, for rows as they are
    int64_t image_bytes = 0;  // of memory, for what images keep
  };
  virtual Sizes sizes() const = 0;
  /// Bytes of memory that put() or change() would take, at most.
  virtual int64_t growth(std::span<const PutRows> /*rows*/, int64_t /*step*/) const { return 0; }
};

}  // namespace recmill::table
