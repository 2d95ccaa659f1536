// SPDX-License-Identifier: Apache-2.0
// Where a placement plan puts each row of one table: from rows to devices and slots, in about a
// seventh of a byte a row, and two to four bytes for a row that does not go with its run.
//
// Rows of one path that go with their runs are a group, those of one path that do not are another.
// A row is number n of its group, in ascending order of rows; on a device that has a copy the rows
// of a group are in slots that follow each other. So a place (group, number) says everything, for
// every device. What is stored: the runs; a bit for each row, whether it goes with its run, and
// beside 448 of them the count of those before, so that one cache line gives a row's number; and
// the group and number of those that do not.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/buffer.h"
#include "placement_plan/placement_plan.h"
#include "table/row_range.h"

namespace recmill::table {

/// A row's group, and its number there.
class RowPlace {
 public:
  RowPlace() = default;
  RowPlace(int group, int64_t number)
      : bits_(static_cast<uint64_t>(group) << kNumberBits | static_cast<uint64_t>(number)) {}
  int group() const { return static_cast<int>(bits_ >> kNumberBits); }
  int64_t number() const {
    return static_cast<int64_t>(bits_ & ((uint64_t{1} << kNumberBits) - 1));
  }
  bool operator==(const RowPlace&) const = default;

  static constexpr int kMostGroups = 1 << 16;

 private:
  static constexpr int kNumberBits = 48;
  uint64_t bits_ = 0;
};

class RowMap {
 public:
  /// Of a table that check_plan() accepts and whose rows are whole. The map has no device of its
  /// own: ranks of a process may share it. Fails beyond RowPlace::kMostGroups, and when memory is
  /// short.
  static Result<std::shared_ptr<const RowMap>> create(const TablePlacement& table,
                                                      std::span<const FetchPath> paths,
                                                      int devices);

  int64_t rows() const { return rows_; }
  int devices() const { return devices_; }
  /// What the map itself takes.
  int64_t bytes() const;
  /// Where all rows are stored in the same order as in the table on one device, that device; else
  /// -1.
  int whole_at() const;

  /// Groups that a place may name.
  int groups() const { return static_cast<int>(groups_.size()); }
  RowPlace place(int64_t row) const;
  /// The same for many rows: out [rows.size()].
  void places(std::span<const int64_t> rows, RowPlace* out) const;

  struct Address {
    int device = 0;
    int64_t slot = 0;
  };
  /// The copy that is complete first, and saved.
  Address home(RowPlace place) const {
    const int home = groups_[place.group()].home;
    return {home, slot(place, home)};
  }
  /// The copy that `device` fetches.
  Address source(RowPlace place, int device) const {
    const int from = from_[index(place.group(), device)];
    return {from, slot(place, from)};
  }
  bool has_copy(RowPlace place, int device) const {
    return first_slots_[index(place.group(), device)] >= 0;
  }
  /// Of a device that has a copy.
  int64_t slot(RowPlace place, int device) const {
    return first_slots_[index(place.group(), device)] + place.number();
  }

  /// Rows that are stored on the device: first those with a copy on every device, in the same slots
  /// on all of them; then others that are at home there; then other copies.
  int64_t slots(int device) const { return slots_[device]; }
  /// The first row of [row, end) with its home on the device, or with a copy there; `end` when
  /// there is none.
  int64_t next_owned(int64_t row, int64_t end, int device) const;
  int64_t next_held(int64_t row, int64_t end, int device) const;
  /// All rows that are stored on the device lie within.
  RowRange extent(int device) const { return extents_[device]; }

  /// Rows with more than one copy, and the number of one among them.
  int64_t copied_rows() const { return copied_rows_; }
  bool is_copied(RowPlace place) const { return groups_[place.group()].first_copied >= 0; }
  int64_t copied_number(RowPlace place) const {
    return groups_[place.group()].first_copied + place.number();
  }
  int64_t next_copied(int64_t row, int64_t end) const;

 private:
  class Builder;

  struct Run {
    int64_t end = 0;     // of its rows
    int64_t number = 0;  // of row r, which goes with the run: number + r - listed rows before r
    int group = 0;
  };
  struct Group {
    int home = 0;
    int64_t rows = 0;
    int64_t first_copied = -1;  // among rows with more than one copy; -1: these have one
  };
  struct alignas(64) Line {
    static constexpr int64_t kWords = 7, kRows = 64 * kWords;
    int64_t before = 0;  // listed rows before this line's
    uint64_t bits[kWords] = {};
  };
  struct Found {
    int64_t before = 0;  // listed rows before
    bool listed = false;
  };

  RowMap() = default;
  size_t index(int group, int device) const {
    return static_cast<size_t>(group) * devices_ + device;
  }
  const Run& run_of(int64_t row) const;
  Found find(int64_t row) const;
  RowPlace place(int64_t row, Found found) const;
  RowPlace listed_place(int64_t before) const;
  int64_t next_listed(int64_t row, int64_t end) const;
  template <typename Wanted>
  int64_t next(int64_t row, int64_t end, const Wanted& wanted) const;

  int64_t rows_ = 0;
  int devices_ = 1;
  std::vector<Run> runs_;
  std::vector<uint32_t> run_at_;  // [ranges of 2^range_bits_ rows + 1]: the run of its first row
  int range_bits_ = 63;

  // Listed rows, those that do not go with their run. Row i of them has entry i, which says the
  // group, counted from first_listed_group_, and the number beyond that in block_numbers_ of its
  // 2^number_bits_ rows. Entries have 16 bits where that leaves many to the number, else 32.
  // Bits and entries, which may be many, are in huge pages.
  Buffer bits_, entries_;
  std::span<Line> lines_;  // empty: none are listed
  std::span<uint16_t> short_entries_;
  std::span<uint32_t> long_entries_;
  std::vector<int64_t> block_numbers_;  // [blocks][groups of listed rows]
  int number_bits_ = 16;
  int first_listed_group_ = 0, listed_groups_ = 0;

  std::vector<Group> groups_;
  std::vector<int> from_;             // [groups][devices]
  std::vector<int64_t> first_slots_;  // [groups][devices]; -1: no copy
  std::vector<int64_t> slots_;        // [devices]
  std::vector<RowRange> extents_;     // [devices]
  int64_t copied_rows_ = 0;
};

}  // namespace recmill::table
