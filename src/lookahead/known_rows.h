// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lookahead_plan/row_index.h"

namespace recmill::lookahead {

/// Rows that come and go, with what is known of each, by small numbers that it gives them.
template <typename Known>
class KnownRows {
 public:
  using Id = typename RowIndex<Known>::Number;

  /// The ids of distinct rows, which become known where they were not; `fresh` says of which rows.
  void find_or_add(std::span<const int64_t> rows, std::span<Id> ids, std::vector<bool>& fresh) {
    fresh.assign(rows.size(), false);
    index_.find_or_add(rows, ids, [&](size_t i) {
      fresh[i] = true;
      if (unused_.empty()) return ids_++;
      const Id id = unused_.back();
      unused_.pop_back();
      return id;
    });
  }
  /// Of rows first + rows[i], which are known; any number of times each.
  void find(std::span<const int64_t> rows, std::span<Id> ids, int64_t first = 0) const {
    index_.find(rows, ids, first);
  }
  /// Forgets rows; their ids may be given to other ones.
  void remove(std::span<const Id> ids) {
    index_.remove(ids);
    unused_.insert(unused_.end(), ids.begin(), ids.end());
  }

  int64_t row(Id id) const { return index_.row(id); }
  Known& operator[](Id id) { return index_.known(id); }
  const Known& operator[](Id id) const { return index_.known(id); }
  /// Asks memory for what is known of ids[i], where there is one.
  void prefetch(std::span<const Id> ids, size_t i) const {
    if (i < ids.size()) index_.prefetch(ids[i]);
  }

  int64_t count() const { return index_.count(); }
  /// Ids that were given so far: all are below.
  Id ids() const { return ids_; }
  int64_t bytes() const {
    return index_.bytes() + static_cast<int64_t>(unused_.capacity() * sizeof(Id));
  }

 private:
  RowIndex<Known> index_;
  Id ids_ = 0;
  std::vector<Id> unused_;  // of these; last in, first out
};

}  // namespace recmill::lookahead
