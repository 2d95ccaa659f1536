// SPDX-License-Identifier: Apache-2.0
// What a rank holds of a table: some rows, or some columns of all rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "schema/column_range.h"
#include "table/row_share.h"

namespace recmill::table {

/// A table's columns split over ranks, in whole groups of 16, the lanes of a row's sum of squares:
/// piece k of n is groups [k g / n, (k + 1) g / n) of the g that a row has, the last of which may
/// be shorter.
class ColumnSplit {
 public:
  static constexpr int64_t kGroup = 16;

  /// No split: whoever holds a row holds all of it.
  ColumnSplit() = default;
  /// Piece k at rank (first_rank + k) mod ranks; pieces <= ranks, and at most as many as groups.
  ColumnSplit(int64_t dim, int ranks, int first_rank, int pieces)
      : dim_(dim), ranks_(ranks), first_rank_(first_rank), pieces_(pieces) {}

  static int64_t groups(int64_t dim) { return (dim + kGroup - 1) / kGroup; }

  bool is_split() const { return pieces_ > 0; }
  int pieces() const { return pieces_; }
  int rank_of(int piece) const { return (first_rank_ + piece) % ranks_; }
  /// -1: the rank holds none.
  int piece_of(int rank) const {
    const int piece = (rank - first_rank_ + ranks_) % ranks_;
    return piece < pieces_ ? piece : -1;
  }
  ColumnRange columns_of(int piece) const {
    const int64_t all = groups(dim_);
    const int64_t begin = piece * all / pieces_ * kGroup;
    return {begin, std::min((piece + 1) * all / pieces_ * kGroup, dim_) - begin};
  }

 private:
  int64_t dim_ = 0;
  int ranks_ = 1;
  int first_rank_ = 0;
  int pieces_ = 0;
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

  /// The columns that a rank holds of rows of `dim`; none where it holds no piece.
  ColumnRange columns_of(int rank, int64_t dim) const {
    if (!columns.is_split()) return {0, dim};
    const int piece = columns.piece_of(rank);
    return piece < 0 ? ColumnRange{} : columns.columns_of(piece);
  }
  ColumnRange own_columns(int64_t dim) const { return columns_of(rows.rank(), dim); }
};

}  // namespace recmill::table
