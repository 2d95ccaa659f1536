// SPDX-License-Identifier: Apache-2.0
// Which rows of a table a rank holds, and where: arithmetic, no index.
#pragma once

#include <algorithm>
#include <cstdint>

#include "table/row_range.h"

namespace recmill::table {

/// A table's rows split over ranks. Each row has a place, which is the row itself or, by hash,
/// row * a mod rows, with `a` prime to rows and near rows / golden ratio (Knuth, TAOCP 3, 6.4:
/// neighbours fall far apart). Range k of n ranges of places is [k rows / n, (k + 1) rows / n), all
/// divisions rounded down; a rank holds one range or none, and a place within its range is a slot.
class RowShare {
 public:
  RowShare() = default;
  /// A range for every rank, by hash. 0 <= rank < ranks; rows >= 0. With one rank the slot is the
  /// row.
  RowShare(int64_t rows, int rank, int ranks);
  /// A range for every rank, of rows that follow each other.
  static RowShare by_range(int64_t rows, int rank, int ranks);
  /// One range, all rows, at rank `home`.
  static RowShare whole(int64_t rows, int rank, int ranks, int home);

  int64_t rows() const { return rows_; }  // of the whole table
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int64_t slots() const { return places_.size(); }  // rows that this rank holds

  /// A row's owner, and its slot there.
  struct Home {
    int rank;
    int64_t slot;
  };
  Home home(int64_t row) const {
    if (ranges_ == 1) return {home_, row};
    const int64_t place = place_of(row);
    const int64_t range = ((place + 1) * ranges_ - 1) / rows_;
    return {home_ + static_cast<int>(range), place - range * rows_ / ranges_};
  }
  int owner(int64_t row) const { return home(row).rank; }
  bool owns(int64_t row) const { return owner(row) == rank_; }
  int64_t slot(int64_t row) const { return home(row).slot; }

  /// Whether rows that follow each other stand in slots that do.
  bool in_order() const { return factor_ == 1; }
  /// All rows of this share lie within.
  RowRange extent() const { return in_order() || slots() == 0 ? places_ : RowRange{0, rows_}; }
  /// The first row of this share from `row` on; rows() when there is none. Arithmetic on every row
  /// that is passed over where they are scattered, but no division.
  int64_t next(int64_t row) const {
    const RowRange within = extent();
    row = std::max(row, within.begin);
    if (row >= within.end) return rows_;
    if (in_order()) return row;
    for (int64_t at = place_of(row); at < places_.begin || at >= places_.end;) {
      if (++row == rows_) break;
      at += factor_;
      if (at >= rows_) at -= rows_;
    }
    return row;
  }
  /// The row in one of this rank's slots.
  int64_t row(int64_t slot) const { return multiply(places_.begin + slot, inverse_); }

 private:
  RowShare(int64_t rows, int rank, int ranks, int home, int ranges);

  int64_t multiply(int64_t x, int64_t factor) const {
    if (factor == 1) return x;
    return static_cast<int64_t>(static_cast<unsigned __int128>(x) * static_cast<uint64_t>(factor) %
                                static_cast<uint64_t>(rows_));
  }
  int64_t place_of(int64_t row) const { return multiply(row, factor_); }

  int64_t rows_ = 0;
  int rank_ = 0;
  int ranks_ = 1;
  int home_ = 0;          // holds the first range, the next ranks the others
  int64_t ranges_ = 1;    // of places
  RowRange places_ = {};  // of this rank
  int64_t factor_ = 1;
  int64_t inverse_ = 1;
};

}  // namespace recmill::table
