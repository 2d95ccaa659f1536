// SPDX-License-Identifier: Apache-2.0
// Which rows of a table a rank holds, and where: by arithmetic, or by the map of a placement plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "table/row_range.h"

namespace recmill::table {

class RowMap;

/// A table's rows split over ranks. Each row has a place, which is the row itself or, by hash,
/// row * a mod rows, with `a` prime to rows and near rows / golden ratio (Knuth, TAOCP 3, 6.4:
/// neighbours fall far apart). Range k of n ranges of places is [k rows / n, (k + 1) rows / n), all
/// divisions rounded down; a rank holds one range or none, and a place within its range is a slot.
///
/// Or each row where a RowMap says: it may then have copies on other ranks than its owner's.
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
  /// Where the map says, whose devices are ranks.
  static RowShare placed(std::shared_ptr<const RowMap> map, int rank);

  int64_t rows() const { return rows_; }  // of the whole table
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int64_t slots() const { return slots_; }  // rows that this rank holds, copies among them
  int64_t slots_of(int rank) const;
  /// Null: arithmetic.
  const RowMap* map() const { return map_.get(); }
  /// Whether a row may have copies.
  bool has_copies() const { return has_copies_; }

  /// A row's owner, and its slot there.
  struct Home {
    int rank;
    int64_t slot;
  };
  Home home(int64_t row) const {
    if (map_ != nullptr) return mapped_home(row);
    if (ranges_ == 1) return {home_, row};
    const int64_t place = place_of(row);
    const int64_t range = ((place + 1) * ranges_ - 1) / rows_;
    return {home_ + static_cast<int>(range), place - range * rows_ / ranges_};
  }
  int owner(int64_t row) const { return home(row).rank; }
  bool owns(int64_t row) const { return owner(row) == rank_; }
  /// Where this rank keeps a row that it holds. Of one that it does not hold, arithmetic gives its
  /// owner's slot.
  int64_t slot(int64_t row) const { return map_ != nullptr ? mapped_slot(row) : home(row).slot; }

  /// Whether rows that follow each other are in slots that do.
  bool in_order() const { return factor_ == 1 && map_ == nullptr; }
  /// All rows of this share lie within.
  RowRange extent() const {
    if (map_ != nullptr) return mapped_extent();
    return in_order() || slots() == 0 ? places_ : RowRange{0, rows_};
  }
  /// The first row from `row` on that this rank owns; rows() when there is none. Arithmetic on
  /// every row that is passed over where they are scattered, but no division.
  int64_t next(int64_t row) const {
    if (map_ != nullptr) return mapped_next(row, rows_, /*owned=*/true);
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
  /// The first row of [row, end) that this rank holds; `end`, or beyond, when there is none.
  int64_t next_held(int64_t row, int64_t end) const {
    return map_ != nullptr ? mapped_next(row, end, /*owned=*/false) : next(row);
  }
  /// The row in one of this rank's slots, by arithmetic: a map does not say.
  int64_t row(int64_t slot) const { return multiply(places_.begin + slot, inverse_); }

 private:
  RowShare(int64_t rows, int rank, int ranks, int home, int ranges);

  RowRange range_of(int rank) const;  // of places
  int64_t multiply(int64_t x, int64_t factor) const {
    if (factor == 1) return x;
    return static_cast<int64_t>(static_cast<unsigned __int128>(x) * static_cast<uint64_t>(factor) %
                                static_cast<uint64_t>(rows_));
  }
  int64_t place_of(int64_t row) const { return multiply(row, factor_); }

  Home mapped_home(int64_t row) const;
  int64_t mapped_slot(int64_t row) const;
  int64_t mapped_next(int64_t row, int64_t end, bool owned) const;
  RowRange mapped_extent() const;

  int64_t rows_ = 0;
  int rank_ = 0;
  int ranks_ = 1;
  int home_ = 0;          // holds the first range, the next ranks the others
  int64_t ranges_ = 1;    // of places
  RowRange places_ = {};  // of this rank
  int64_t factor_ = 1;
  int64_t inverse_ = 1;
  int64_t slots_ = 0;
  std::shared_ptr<const RowMap> map_;
  bool has_copies_ = false;
};

}  // namespace recmill::table
