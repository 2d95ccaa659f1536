// SPDX-License-Identifier: Apache-2.0
// What one task of a parser makes: some consecutive rows of a batch. Values with one place a row go
// straight there; bags, whose places depend on the rows before, are kept until all tasks are done.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/column_batch.h"
#include "reader/plain_text_parser.h"

namespace recmill::reader {

struct PieceColumn {
  int64_t size = 0;            // ids so far
  std::vector<int64_t> ends;   // [rows of the piece], size after each row
  std::vector<uint64_t> ids;   // the first `size` are used
  std::vector<float> weights;  // beside ids where the column has weights, else empty
};

class ParsedPiece {
 public:
  ColumnBatch* batch = nullptr;
  int64_t first = 0;                 // row of the batch that is row 0 of the piece
  std::vector<PieceColumn> columns;  // [id columns]
  std::vector<float*> dense;         // [dense columns], where row 0 goes

  /// Begins a piece of `rows` rows; memory is reused.
  void begin(ColumnBatch& target, int64_t first_row, int64_t rows);
  /// Stores row `row` of the piece (rows are stored in order).
  void store(int64_t row, const RowValues& values);
  /// Stores the one value of `values` that `column` is for.
  void store_cell(int64_t row, const TextColumn& column, const RowValues& values);
  /// Forgets what was stored of row `row`, the last.
  void forget(int64_t row);
  /// Appends the bags of id column `c`, `rows` rows, to those of the batch.
  void append_bags(size_t c, int64_t rows);

 private:
  void store_bag(int64_t row, size_t c, const RowValues& values);
};

}  // namespace recmill::reader
