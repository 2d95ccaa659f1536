// SPDX-License-Identifier: Apache-2.0
// Rows of a data set from which `recmill init` guesses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader/data_options.h"

namespace recmill::reader {

/// What a file says of the cells of a column. `unsaid`: text, which may hold anything; `hashed`:
/// text of which a hash is kept here; `unread`: a type that no role can read.
enum class CellType { unsaid, whole, real, hashed, time, unread };

/// The cells of one column, front to back. An empty cell is missing.
struct SampledColumn {
  std::string name;
  CellType type = CellType::unsaid;
  bool list = false;                         // by its type; items are parted by kItemEnd
  bool weighted = false;                     // items have weights, which are not sampled
  ColumnRole declared = ColumnRole::ignore;  // what the file says itself

  static constexpr char kItemEnd = '\x1F';

  size_t rows() const { return ends_.size(); }
  std::string_view operator[](size_t row) const {
    const size_t begin = row == 0 ? 0 : ends_[row - 1];
    return std::string_view(bytes_).substr(begin, ends_[row] - begin);
  }
  void add(std::string_view cell) {
    bytes_ += cell;
    ends_.push_back(bytes_.size());
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

struct Sample {
  DataOptions data;  // format, delimiter, header; path and train are the caller's
  std::vector<SampledColumn> columns;
  std::vector<std::string> header;  // cells of the first line where it names the columns
  bool declared = false;            // the file itself says what its columns are
  int64_t estimated_rows = 0;       // of all files
  bool whole = false;               // every row is in the sample

  int64_t rows() const { return columns.empty() ? 0 : static_cast<int64_t>(columns[0].rows()); }
};

}  // namespace recmill::reader
