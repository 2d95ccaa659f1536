// SPDX-License-Identifier: Apache-2.0
#include "lookahead/moved_rows.h"

#include <utility>
namespace recmill::lookahead {

MovedRows moved_without_cache(const StepUses& uses, const IsFrozen& is_frozen) {
  MovedRows moved{.fetched = std::ssize(uses.ranks)};
  for (int64_t i = 0; i < uses.count(); ++i)
    if (!is_frozen || !is_frozen(uses.rows[i])) moved.gradients += std::ssize(uses.users(i));
  return moved;
}

MovedRowsCounter::MovedRowsCounter(int ranks, HomeOf home_of, IsFrozen is_frozen)
    : ranks_(ranks),
      home_of_(std::move(home_of)),
      is_frozen_(std::move(is_frozen)),
      sent_(static_cast<size_t>(ranks)) {}

void MovedRowsCounter::send(int32_t from, int64_t& of, int64_t rows) {
  of += rows;
  sent_[static_cast<size_t>(from)] += rows;
}

/// Who has the row sends the other users its weights, and they send it their sums. Where all have
/// it the sums meet at its home, which sends the new weights to all.
void MovedRowsCounter::use(const RowInSlot& row, std::span<const int32_t> users) {
  const bool is_copied = row.holder == kEverywhere;
  const int32_t meet = is_copied ? home_of_(row.row) : row.holder;
  for (const int32_t user : users) {
    if (user == meet) continue;
    if (!is_copied) send(meet, moved_.weights);
    if (changes(row.row)) send(user, moved_.gradients);
  }
  if (is_copied && changes(row.row)) send(meet, moved_.weights, ranks_ - 1);
}

void MovedRowsCounter::add(const StepUses& uses, const LookaheadStep& decision) {
  for (const RowInSlot& row : decision.fetch)
    moved_.fetched += row.holder == kEverywhere ? ranks_ : 1;
  for (int64_t i = 0; i < uses.count(); ++i) use(decision.uses[i], uses.users(i));
  for (const HandOver& row : decision.hand_over)
    send(row.from.holder, moved_.handed_over, row.to.holder == kEverywhere ? ranks_ - 1 : 1);
  for (const RowInSlot& row : decision.evict) moved_.written_back += changes(row.row) ? 1 : 0;
}

}  // namespace recmill::lookahead
