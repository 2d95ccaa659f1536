// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lookahead_plan/row_index.h"

namespace recmill::lookahead {

/// Small numbers for the rows of a window, with what is known of each: 24 bytes a row beside the
/// places of its index.
class RowIds {
 public:
  static constexpr int32_t kNoSlot = -1;

  struct Known {
    uint32_t use = 0;    // the step that uses it last, of those that are known; lower bits
    uint32_t index = 0;  // among that step's rows
    int32_t slot = kNoSlot;
    uint32_t evicted = 0;  // 1 + the step that evicted it while it was known; 0: none did
  };
  using Id = RowIndex<Known>::Number;

  /// The ids of distinct rows, which become known where they were not; `fresh` says of which rows.
  void find_or_add(std::span<const int64_t> rows, std::span<Id> ids, std::vector<bool>& fresh);
  /// Forgets rows; their ids may be given to other ones.
  void remove(std::span<const Id> ids);

  int64_t row(Id id) const { return index_.row(id); }
  Known& operator[](Id id) { return index_.known(id); }
  const Known& operator[](Id id) const { return index_.known(id); }
  /// Asks memory for what is known of ids[i], where there is one.
  void prefetch(std::span<const Id> ids, size_t i) const {
    if (i < ids.size()) index_.prefetch(ids[i]);
  }
  int64_t count() const { return index_.count(); }
  int64_t bytes() const;

 private:
  RowIndex<Known> index_;
  Id ids_ = 0;              // that were given so far
  std::vector<Id> unused_;  // of these; last in, first out
};

}  // namespace recmill::lookahead
