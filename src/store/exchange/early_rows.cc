// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/early_rows.h"

#include <algorithm>
#include <utility>

namespace recmill::store {

EarlyRows::EarlyRows(std::span<const Row> rows, int ranks) : places_(static_cast<size_t>(ranks)) {
  size_t end = 0;
  for (const Row& row : rows) {
    places_[row.rank].push_back({row.row, row.table, row.slot, row.dim, end});
    end += static_cast<size_t>(row.dim);
  }
  weights_.resize(end);
  by_slot_ = places_;
  for (auto& of_rank : by_slot_)
    std::ranges::sort(of_rank, {}, [](const Place& of) { return std::pair(of.table, of.slot); });
}

std::span<float> EarlyRows::room(int rank, size_t n) {
  const Place& of = places_[rank][n];
  return std::span(weights_).subspan(of.begin, static_cast<size_t>(of.dim));
}

std::vector<EarlyRows::Written> EarlyRows::in_range(int64_t first, int64_t end) {
  std::vector<Written> found;
  for (const auto& of_rank : places_)
    for (const Place& of : of_rank)
      if (of.row >= first && of.row < end)
        found.push_back(
            {of.row, std::span(weights_).subspan(of.begin, static_cast<size_t>(of.dim))});
  return found;
}

const float* EarlyRows::find(int rank, int table, int64_t slot) const {
  const std::pair wanted(table, slot);
  const auto key = [](const Place& of) { return std::pair(of.table, of.slot); };
  const auto found = std::ranges::lower_bound(by_slot_[rank], wanted, {}, key);
  if (found == by_slot_[rank].end() || key(*found) != wanted) return nullptr;
  return weights_.data() + found->begin;
}

}  // namespace recmill::store
