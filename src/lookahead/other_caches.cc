// SPDX-License-Identifier: Apache-2.0
#include "lookahead/other_caches.h"

#include <algorithm>
#include <utility>

namespace recmill::lookahead {

int64_t LeastRecentlyUsed::fetch(std::span<const int64_t> rows) {
  int64_t fetched = 0;
  for (const int64_t row : rows) {
    const auto found = places_.find(row);
    if (found == places_.end()) {
      ++fetched;
      order_.push_front(row);
      places_.emplace(row, order_.begin());
    } else {
      order_.splice(order_.begin(), order_, found->second);
    }
  }
  while (std::ssize(order_) > slots_) {
    places_.erase(order_.back());
    order_.pop_back();
  }
  return fetched;
}

std::vector<int64_t> most_looked_up(const std::unordered_map<int64_t, int64_t>& lookups,
                                    int64_t count) {
  std::vector<std::pair<int64_t, int64_t>> ranked;  // lookups, most first; row
  ranked.reserve(lookups.size());
  for (const auto& [row, times] : lookups) ranked.emplace_back(-times, row);
  const auto end = ranked.begin() + std::min(count, std::ssize(ranked));
  std::partial_sort(ranked.begin(), end, ranked.end());
  std::vector<int64_t> rows;
  for (auto of = ranked.begin(); of != end; ++of) rows.push_back(of->second);
  std::ranges::sort(rows);
  return rows;
}

}  // namespace recmill::lookahead
