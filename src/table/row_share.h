// SPDX-License-Identifier: Apache-2.0
// Which rows of a table a rank holds, and where: arithmetic, no index.
#pragma once

#include <cstdint>

namespace recmill::table {

/// A table's rows split over ranks by hash. place(row) = row * a mod rows, with `a` prime to rows
/// and near rows / golden ratio (Knuth, TAOCP 3, 6.4: neighbours fall far apart), permutes the
/// rows; rank r holds places [r b, (r + 1) b), b = ceil(rows / ranks), the place within it being
/// the slot. With one rank the slot is the row.
class RowShare {
 public:
  RowShare() = default;
  /// 0 <= rank < ranks; rows >= 0.
  RowShare(int64_t rows, int rank, int ranks);

  int64_t rows() const { return rows_; }  // of the whole table
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int64_t slots() const { return slots_; }  // rows that this rank holds

  int owner(int64_t row) const { return ranks_ == 1 ? 0 : static_cast<int>(place(row) / block_); }
  bool owns(int64_t row) const { return owner(row) == rank_; }
  /// Slot at the row's owner, whichever rank that is.
  int64_t slot(int64_t row) const { return ranks_ == 1 ? row : place(row) % block_; }
  /// The first row of this share from `row` on; rows() when there is none. Arithmetic on every row
  /// that is passed over, but no division.
  int64_t next(int64_t row) const {
    if (ranks_ == 1 || row >= rows_) return row;
    const int64_t begin = rank_ * block_;
    for (int64_t at = place(row); at < begin || at >= begin + slots_;) {
      if (++row == rows_) break;
      at += factor_;
      if (at >= rows_) at -= rows_;
    }
    return row;
  }
  /// The row in one of this rank's slots.
  int64_t row(int64_t slot) const {
    return ranks_ == 1 ? slot : multiply(rank_ * block_ + slot, inverse_);
  }

 private:
  int64_t multiply(int64_t x, int64_t factor) const {
    return static_cast<int64_t>(static_cast<unsigned __int128>(x) * static_cast<uint64_t>(factor) %
                                static_cast<uint64_t>(rows_));
  }
  int64_t place(int64_t row) const { return multiply(row, factor_); }

  int64_t rows_ = 0;
  int rank_ = 0;
  int ranks_ = 1;
  int64_t block_ = 0;
  int64_t slots_ = 0;
  int64_t factor_ = 1;
  int64_t inverse_ = 1;
};

}  // namespace recmill::table
