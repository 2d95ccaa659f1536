// SPDX-License-Identifier: Apache-2.0
// What a rank holds of a table: some rows, or some columns of all rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "schema/column_pieces.h"
#include "schema/table_spec.h"
#include "table/row_share.h"

namespace recmill::table {

/// A table's columns split over ranks, in pieces as column_piece() cuts them.
class ColumnSplit {
 public:
  /// No split: whoever holds a row holds all of it.
  ColumnSplit() = default;
  /// Piece k at ranks[k], each once; at most as many as groups.
  ColumnSplit(int64_t dim, std::vector<int> ranks) : dim_(dim), ranks_(std::move(ranks)) {}

  bool is_split() const { return !ranks_.empty(); }
  int pieces() const { return static_cast<int>(ranks_.size()); }
  int rank_of(int piece) const { return ranks_[piece]; }
  /// -1: the rank holds none.
  int piece_of(int rank) const {
    const auto found = std::ranges::find(ranks_, rank);
    return found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin());
  }
  ColumnRange columns_of(int piece) const { return column_piece(dim_, pieces(), piece); }

 private:
  int64_t dim_ = 0;
  std::vector<int> ranks_;  // [pieces]
};

/// Some columns of some rows.
struct Extent {
  RowRange rows;
  ColumnRange columns;
};

struct TableShare {
  RowShare rows;  // of columns that are split: all of them at every rank that holds a piece
  ColumnSplit columns = {};

  // Rows are whole unless something else is said.
  TableShare(const RowShare& share) : rows(share) {}
  TableShare(const RowShare& share, const ColumnSplit& split) : rows(share), columns(split) {}
  /// Of a table whose columns are in pieces at `ranks_of_pieces`, each once.
  static TableShare by_columns(const TableSpec& spec, std::vector<int> ranks_of_pieces, int rank,
                               int ranks) {
    const int first = ranks_of_pieces[0];
    if (ranks_of_pieces.size() == 1) return RowShare::whole(spec.rows, rank, ranks, first);
    const ColumnSplit split(spec.dim, std::move(ranks_of_pieces));
    const int home = split.piece_of(rank) >= 0 ? rank : first;
    return {RowShare::whole(spec.rows, rank, ranks, home), split};
  }

  /// The columns that a rank holds of rows of `dim`; none where it holds no piece.
  ColumnRange columns_of(int rank, int64_t dim) const {
    if (!columns.is_split()) return {0, dim};
    const int piece = columns.piece_of(rank);
    return piece < 0 ? ColumnRange{} : columns.columns_of(piece);
  }
  ColumnRange own_columns(int64_t dim) const { return columns_of(rows.rank(), dim); }
};

}  // namespace recmill::table
