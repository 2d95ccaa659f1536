// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace recmill::remote {

/// Some rows of one table: of each its record, or that it is an initial row. An entry takes 12
/// bytes and its record; a quarter of the entries' room, or more, is free. Records keep their
/// addresses.
class RecordMap {
 public:
  /// Of an entry with its record, when there are many.
  static constexpr int64_t kMostBytesBeside = 27;

  explicit RecordMap(int64_t record_bytes);

  bool contains(int64_t row) const { return entry_of(row) >= 0; }
  /// Null: there is no entry, or the row is an initial one.
  const std::byte* find(int64_t row) const;
  /// Room for the row's record, which is not set where there was none.
  std::byte* make(int64_t row);
  void make_initial(int64_t row);

  /// Rows with a record.
  int64_t records() const { return records_; }
  /// What all of it takes.
  int64_t bytes() const;
  /// Hints that rows will be looked for.
  void prefetch(int64_t row) const {
    const size_t entry = first_entry(row);
    __builtin_prefetch(&rows_[entry]);
    __builtin_prefetch(&places_[entry]);
  }

  /// Calls body(row, record or null) for each entry, in no order.
  template <class Body>
  void each(const Body& body) const {
    for (size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i] != kNoRow) body(rows_[i], record(places_[i]));
  }

 private:
  static constexpr int64_t kNoRow = -1;
  static constexpr uint32_t kInitial = ~uint32_t{0};

  size_t first_entry(int64_t row) const;
  int64_t entry_of(int64_t row) const;
  size_t insert(int64_t row);
  void grow();
  std::byte* record(uint32_t place) const {
    return place == kInitial
               ? nullptr
               : chunks_[place / chunk_records_].get() + place % chunk_records_ * record_bytes_;
  }

  size_t record_bytes_;
  uint32_t chunk_records_;
  std::vector<int64_t> rows_;     // [entries], by hash
  std::vector<uint32_t> places_;  // [entries], of records
  size_t used_ = 0;               // entries
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  uint32_t next_place_ = 0;
  std::vector<uint32_t> free_places_;
  int64_t records_ = 0;
};

}  // namespace recmill::remote
