// SPDX-License-Identifier: Apache-2.0
#include "lookahead/other_caches.h"

#include <algorithm>

namespace recmill::lookahead {

void LeastRecentlyUsed::take_out(Rows::Id id) {
  const Neighbours of = rows_[id];
  (of.later == kNone ? latest_ : rows_[of.later].earlier) = of.earlier;
  (of.earlier == kNone ? earliest_ : rows_[of.earlier].later) = of.later;
}

void LeastRecentlyUsed::put_last_used(Rows::Id id) {
  rows_[id] = {kNone, latest_};
  (latest_ == kNone ? earliest_ : rows_[latest_].later) = id;
  latest_ = id;
}

int64_t LeastRecentlyUsed::fetch(std::span<const int64_t> rows) {
  ids_.resize(rows.size());
  rows_.find_or_add(rows, ids_, fresh_);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!fresh_[i]) take_out(ids_[i]);
    put_last_used(ids_[i]);
  }
  std::vector<Rows::Id> leaving;
  for (int64_t left = rows_.count() - slots_; left > 0; --left) {
    leaving.push_back(earliest_);
    take_out(earliest_);
  }
  rows_.remove(leaving);
  return std::ranges::count(fresh_, true);
}

std::vector<int64_t> most_looked_up(std::vector<RowLookups> rows, int64_t count) {
  const auto more = [](const RowLookups& a, const RowLookups& b) {
    return a.lookups != b.lookups ? a.lookups > b.lookups : a.row < b.row;
  };
  const auto end = rows.begin() + std::min(count, std::ssize(rows));
  std::partial_sort(rows.begin(), end, rows.end(), more);
  std::vector<int64_t> most;
  for (auto of = rows.begin(); of != end; ++of) most.push_back(of->row);
  std::ranges::sort(most);
  return most;
}

}  // namespace recmill::lookahead
