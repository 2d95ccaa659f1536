// SPDX-License-Identifier: Apache-2.0
// What one task of a parser makes: some consecutive rows of a batch. Values with one place a row go
// straight there. Ids go where they are if no row before them lacks one, and move up when all
// tasks are done; bags, which may hold more, are kept until then.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/column_batch.h"
#include "reader/row/plain_text_parser.h"

namespace recmill::reader {

struct PieceColumn {
  bool holds_bags() const { return ids == own_ids.data(); }

  uint64_t* ids = nullptr;  // those of the batch's column; bags: own_ids
  int64_t start = 0;        // where its first goes in `ids`
  int64_t size = 0;         // start + ids so far
  int64_t* ends = nullptr;  // [rows of the piece], size after each row; in the batch's offsets
  std::vector<uint64_t> own_ids;
  std::vector<float> weights;  // beside own_ids where the column has weights, else empty
};

class ParsedPiece {
 public:
  ColumnBatch* batch = nullptr;
  int64_t first = 0;                 // row of the batch that is row 0 of the piece
  std::vector<PieceColumn> columns;  // [id columns]
  std::vector<float*> dense;         // [dense columns], where row 0 goes

  /// Begins a piece of `rows` rows that `target` has room for; memory is reused. `has_bags` [id
  /// columns]: the others have at most one id a row.
  void begin(ColumnBatch& target, const std::vector<bool>& has_bags, int64_t first_row,
             int64_t rows);
  /// Stores row `row` of the piece (rows are stored in order).
  void store(int64_t row, const RowValues& values);
  /// Stores the one value of `values` that `column` is for.
  void store_cell(int64_t row, const TextColumn& column, const RowValues& values);
  /// Forgets what was stored of row `row`, the last.
  void forget(int64_t row);
  /// Puts the ids of id column `c`, `rows` rows, behind those of the pieces before, which were
  /// joined.
  void join(size_t c, int64_t rows);

 private:
  void store_bag(int64_t row, size_t c, const RowValues& values);
};

}  // namespace recmill::reader
