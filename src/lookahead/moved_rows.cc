// SPDX-License-Identifier: Apache-2.0
#include "lookahead/moved_rows.h"

#include <algorithm>

#include "base/split_mix.h"

namespace recmill::lookahead {

MovedRows moved_without_cache(const StepUses& uses) {
  return {.fetched = std::ssize(uses.ranks), .gradients = std::ssize(uses.ranks)};
}

MovedRowsCounter::MovedRowsCounter(CacheDesign design, int ranks)
    : design_(design), ranks_(ranks), sent_(static_cast<size_t>(ranks)) {}

void MovedRowsCounter::send(int32_t from, int64_t& of, int64_t rows) {
  of += rows;
  sent_[static_cast<size_t>(from)] += rows;
}

/// The rank that a hash names where that decides; else, of those that use the row, the one that has
/// sent least.
int32_t MovedRowsCounter::owner_of(int64_t row, std::span<const int32_t> users) const {
  if (design_ == CacheDesign::partitioned)
    return static_cast<int32_t>(split_mix(static_cast<uint64_t>(row)) %
                                static_cast<uint64_t>(ranks_));
  return *std::ranges::min_element(users, {},
                                   [&](int32_t rank) { return sent_[static_cast<size_t>(rank)]; });
}

/// The owner sends its users the weights, and they send it their sums.
void MovedRowsCounter::with_owner(int64_t row, std::span<const int32_t> users, int32_t& owner) {
  if (design_ == CacheDesign::forward && !std::ranges::binary_search(users, owner)) {
    const int32_t next = owner_of(row, users);
    send(owner, moved_.handed_over);
    owner = next;
  }
  for (const int32_t user : users) {
    if (user == owner) continue;
    send(owner, moved_.weights);
    send(user, moved_.gradients);
  }
}

/// Sums meet at the rank of the row's hash, which sends the new weights to all, unless the row
/// leaves.
void MovedRowsCounter::with_copies(int64_t row, std::span<const int32_t> users, bool leaves,
                                   int32_t& owner) {
  if (owner != kEverywhere) {
    if (users.size() == 1 && users[0] == owner) return;  // it alone has used the row
    send(owner, moved_.weights, ranks_ - 1);
    owner = kEverywhere;
  }
  const auto meet =
      static_cast<int32_t>(split_mix(static_cast<uint64_t>(row)) % static_cast<uint64_t>(ranks_));
  for (const int32_t user : users)
    if (user != meet) send(user, moved_.gradients);
  if (!leaves) send(meet, moved_.weights, ranks_ - 1);
}

void MovedRowsCounter::add(const StepUses& uses, const LookaheadStep& decision) {
  moved_.fetched += std::ssize(decision.fetch) * (design_ == CacheDesign::replicated ? ranks_ : 1);
  moved_.written_back += std::ssize(decision.evict);
  for (int64_t i = 0; i < uses.count(); ++i) {
    const int64_t row = uses.rows[i];
    const auto users = uses.users(i);
    const auto [found, fresh] = owners_.try_emplace(row, kEverywhere);
    int32_t& owner = found->second;
    if (fresh && design_ != CacheDesign::replicated) owner = owner_of(row, users);
    if (design_ == CacheDesign::forward || design_ == CacheDesign::partitioned) {
      with_owner(row, users, owner);
    } else {
      with_copies(row, users, std::ranges::binary_search(decision.evict, row, {}, &RowInSlot::row),
                  owner);
    }
  }
  for (const RowInSlot& evicted : decision.evict) owners_.erase(evicted.row);
}

}  // namespace recmill::lookahead
