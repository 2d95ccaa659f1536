// SPDX-License-Identifier: Apache-2.0
// Caches that know no future, to compare with (BagPipe, figures 3 and 4).
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

namespace recmill::lookahead {

/// Keeps the rows that were used last. Rows of a step are used in ascending order; those that are
/// too many leave at its end.
class LeastRecentlyUsed {
 public:
  explicit LeastRecentlyUsed(int64_t slots) : slots_(slots) {}

  /// The distinct rows of the next step, ascending; how many of them are fetched.
  int64_t fetch(std::span<const int64_t> rows);

 private:
  const int64_t slots_;
  std::list<int64_t> order_;  // the one used last in front
  std::unordered_map<int64_t, std::list<int64_t>::iterator> places_;
};

/// The `count` rows of most lookups, ascending; of equals the smaller ones.
std::vector<int64_t> most_looked_up(const std::unordered_map<int64_t, int64_t>& lookups,
                                    int64_t count);

}  // namespace recmill::lookahead
