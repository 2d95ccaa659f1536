// SPDX-License-Identifier: Apache-2.0
// How often the 8-bit counters of a table's rows have wrapped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"

namespace recmill::stats {

/// An open-addressing table from row to a count above 0; 16 to 43 bytes a row held.
class WrappedRows {
 public:
  void add(int64_t row, int64_t times) {
    if ((held_ + 1) * 4 > static_cast<int64_t>(slots_.size()) * 3) grow();
    Slot& slot = slot_of(row);
    held_ += slot.times == 0;
    slot.row = row;
    slot.times += times;
  }
  int64_t size() const { return held_; }
  /// Of a row that was never added 0.
  int64_t times(int64_t row) const { return held_ == 0 ? 0 : slots_[index_of(row)].times; }
  /// (row, times), rows ascending.
  std::vector<std::pair<int64_t, int64_t>> ascending() const {
    std::vector<std::pair<int64_t, int64_t>> all;
    all.reserve(static_cast<size_t>(held_));
    for (const Slot& slot : slots_) {
      if (slot.times > 0) all.emplace_back(slot.row, slot.times);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  struct Slot {
    int64_t row = 0, times = 0;  // times 0: free
  };
  uint64_t index_of(int64_t row) const {
    const uint64_t mask = slots_.size() - 1;
    uint64_t at = Random::mix(static_cast<uint64_t>(row)) & mask;
    while (slots_[at].times > 0 && slots_[at].row != row) at = (at + 1) & mask;
    return at;
  }
  Slot& slot_of(int64_t row) { return slots_[index_of(row)]; }
  void grow() {
    const std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(std::max<size_t>(16, slots_.size() * 2)));
    for (const Slot& slot : old) {
      if (slot.times > 0) slot_of(slot.row) = slot;
    }
  }
  std::vector<Slot> slots_;  // a power of two of them
  int64_t held_ = 0;
};

}  // namespace recmill::stats
