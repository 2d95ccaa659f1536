// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace recmill {

/// How far a cache looks ahead and what it has room for, chosen once from the first window.
struct CacheSize {
  int64_t lookahead = 0;  // L
  int64_t prefetch = 0;   // P, at most L
  // [slot tables], at each rank: of its own rows, and, where there are several, of rows that all
  // ranks have.
  std::vector<int64_t> slots = {}, copied_slots = {};
  // The first window: its batches, the distinct rows of each batch together, and of all.
  int64_t batches = 0, distinct = 0, rows = 0;
  bool operator==(const CacheSize&) const = default;
};

}  // namespace recmill
