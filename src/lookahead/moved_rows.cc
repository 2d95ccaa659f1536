// SPDX-License-Identifier: Apache-2.0
#include "lookahead/moved_rows.h"

#include <algorithm>
#include <utility>

#include "base/split_mix.h"

namespace recmill::lookahead {

MovedRows moved_without_cache(const StepUses& uses, const IsFrozen& is_frozen) {
  MovedRows moved{.fetched = std::ssize(uses.ranks)};
  for (int64_t i = 0; i < uses.count(); ++i)
    if (!is_frozen || !is_frozen(uses.rows[i])) moved.gradients += std::ssize(uses.users(i));
  return moved;
}

MovedRowsCounter::MovedRowsCounter(CacheDesign design, int ranks, IsFrozen is_frozen)
    : design_(design),
      ranks_(ranks),
      is_frozen_(std::move(is_frozen)),
      sent_(static_cast<size_t>(ranks)) {}

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
void MovedRowsCounter::with_owner(int64_t row, std::span<const int32_t> users, bool changes,
                                  int32_t& owner) {
  if (design_ == CacheDesign::forward && !std::ranges::binary_search(users, owner)) {
    const int32_t next = owner_of(row, users);
    send(owner, moved_.handed_over);
    owner = next;
  }
  for (const int32_t user : users) {
    if (user == owner) continue;
    send(owner, moved_.weights);
    if (changes) send(user, moved_.gradients);
  }
}

/// Sums meet at the rank of the row's hash, which sends the new weights to all, unless the row
/// leaves.
void MovedRowsCounter::with_copies(int64_t row, std::span<const int32_t> users, bool changes,
                                   bool leaves, int32_t& owner) {
  if (owner != kEverywhere) {
    if (users.size() == 1 && users[0] == owner) return;  // it alone has used the row
    send(owner, moved_.weights, ranks_ - 1);
    owner = kEverywhere;
  }
  if (!changes) return;
  const auto meet =
      static_cast<int32_t>(split_mix(static_cast<uint64_t>(row)) % static_cast<uint64_t>(ranks_));
  for (const int32_t user : users)
    if (user != meet) send(user, moved_.gradients);
  if (!leaves) send(meet, moved_.weights, ranks_ - 1);
}

void MovedRowsCounter::add(const StepUses& uses, const LookaheadStep& decision) {
  moved_.fetched += std::ssize(decision.fetch) * (design_ == CacheDesign::replicated ? ranks_ : 1);
  for (const RowInSlot& fetched : decision.fetch) {
    owners_.resize(std::max(owners_.size(), static_cast<size_t>(fetched.slot) + 1));
    owners_[fetched.slot] = design_ == CacheDesign::replicated ? kEverywhere : kNew;
  }
  size_t evicted = 0;  // of those that leave
  for (int64_t i = 0; i < uses.count(); ++i) {
    const int64_t row = uses.rows[i];
    const auto users = uses.users(i);
    int32_t& owner = owners_[decision.uses[i].slot];
    if (owner == kNew) owner = owner_of(row, users);
    const bool changes = !is_frozen_ || !is_frozen_(row);
    while (evicted < decision.evict.size() && decision.evict[evicted].row < row) ++evicted;
    const bool leaves = evicted < decision.evict.size() && decision.evict[evicted].row == row;
    if (design_ == CacheDesign::forward || design_ == CacheDesign::partitioned) {
      with_owner(row, users, changes, owner);
    } else {
      with_copies(row, users, changes, leaves, owner);
    }
  }
  for (const RowInSlot& left : decision.evict)
    moved_.written_back += !is_frozen_ || !is_frozen_(left.row) ? 1 : 0;
}

}  // namespace recmill::lookahead
