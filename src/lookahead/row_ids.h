// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace recmill::lookahead {

/// Small numbers for the rows of a window, with what is known of each: a hash table by linear
/// probing, of 24 bytes a row and 4 a place of the table, of which at least a quarter is empty.
class RowIds {
 public:
  using Id = uint32_t;
  static constexpr int32_t kNoSlot = -1;

  struct Row {
    int64_t row = 0;
    uint32_t use = 0;    // the step that uses it last, of those that are known; lower bits
    uint32_t index = 0;  // among that step's rows
    int32_t slot = kNoSlot;
    uint32_t evicted = 0;  // 1 + the step that evicted it while it was known; 0: none did
  };

  RowIds();
  /// The ids of rows, which become known where they were not; `fresh` says of which rows.
  void find_or_add(std::span<const int64_t> rows, std::span<Id> ids, std::vector<bool>& fresh);
  /// Forgets a row; its id may be given to another one.
  void remove(Id id);

  Row& operator[](Id id) { return rows_[id]; }
  const Row& operator[](Id id) const { return rows_[id]; }
  int64_t count() const { return count_; }
  int64_t bytes() const;

 private:
  static constexpr Id kEmpty = ~Id{0};
  size_t home(int64_t row) const;
  void grow();

  std::vector<Row> rows_;   // by id
  std::vector<Id> unused_;  // ids; last in, first out
  std::vector<Id> places_;  // a power of two
  int64_t count_ = 0;
};

}  // namespace recmill::lookahead
