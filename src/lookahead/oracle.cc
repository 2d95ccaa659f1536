// SPDX-License-Identifier: Apache-2.0
#include "lookahead/oracle.h"

#include <fmt/format.h>

#include <algorithm>

namespace recmill::lookahead {
namespace {

constexpr size_t kAhead = 16;  // ids between one that is looked at and one that memory is asked for

}  // namespace

Oracle::Oracle(const OracleOptions& options)
    : lookahead_(options.lookahead),
      prefetch_(std::min(options.prefetch, options.lookahead)),
      ranks_(options.ranks),
      rank_(options.rank),
      design_(options.design),
      is_short_(options.slots > 0 || options.copied_slots > 0),
      pools_(options.ranks > 1 ? static_cast<size_t>(options.ranks) + 1 : 1),
      sent_(static_cast<size_t>(options.ranks)) {
  RECMILL_CHECK(lookahead_ >= 0 && lookahead_ <= kMostLookahead && prefetch_ >= 0);
  RECMILL_CHECK(options.slots >= 0 && options.copied_slots >= 0 && ranks_ >= 1);
  for (Pool& pool : pools_) pool.slots = options.slots;
  if (many()) pools_.back().slots = options.copied_slots;
}

void Oracle::see(std::span<const int64_t> rows) {
  RECMILL_CHECK(!ended_ && !many());
  steps_.emplace_back().rows.assign(rows.begin(), rows.end());
}

void Oracle::see(StepUses uses) {
  RECMILL_CHECK(!ended_);
  Step& step = steps_.emplace_back();
  step.rows = std::move(uses.rows);
  if (many()) step.uses = std::move(uses);
}

void Oracle::go_on() {
  RECMILL_CHECK(ended_ && steps_.empty() && resident_ == 0);
  ended_ = false;
  resumed_ = first_;
}

bool Oracle::ready() const {
  const int64_t last = first_ + std::max(lookahead_, prefetch_ + 1);
  return ended_ ? first_ < seen() : last < seen();
}

Result<LookaheadStep> Oracle::decide() {
  RECMILL_CHECK(ready());
  link(first_ + lookahead_);
  LookaheadStep decision{.step = first_,
                         .filled_after = std::max(first_ - prefetch_, resumed_) - 1};
  // Of the first decision alone, and of the first after going on.
  while (fetched_ <= std::min(first_ + prefetch_, seen() - 1))
    RECMILL_RETURN_IF_ERROR(fetch(decision));
  decision.fetch = std::move(fetches_.front().fetch);
  decision.fence = fetches_.front().fence;
  fetches_.pop_front();
  tell_uses(decision);
  if (is_short()) note_returns();
  expire(decision);
  hand_over(decision);
  link(first_ + prefetch_ + 1);  // with P = L that is beyond the window
  if (fetched_ < seen()) RECMILL_RETURN_IF_ERROR(fetch(decision));
  std::ranges::sort(decision.evict);
  std::ranges::sort(decision.hand_over);
  steps_.pop_front();
  ++first_;
  return decision;
}

/// Makes the uses of steps up to `last` known to the uses before them.
void Oracle::link(int64_t last) {
  for (; linked_ <= std::min(last, seen() - 1); ++linked_) {
    Step& step = at(linked_);
    step.ids.resize(step.rows.size());
    if (is_short()) step.gaps.assign(step.rows.size(), 0);
    ids_.find_or_add(step.rows, step.ids, fresh_);
    if (many()) held_.resize(std::max<size_t>(held_.size(), ids_.ids()));
    const auto use = static_cast<uint32_t>(linked_);
    for (size_t i = 0; i < step.ids.size(); ++i) {
      Known& row = ids_[step.ids[i]];
      if (!fresh_[i]) {
        const uint32_t gap = use - row.use;
        Step& before = at(linked_ - gap);
        if (gap == 1) ++before.critical;
        if (is_short()) before.gaps[row.index] = static_cast<uint16_t>(gap);
      } else if (many()) {
        held_[step.ids[i]] = {};
      }
      row.use = use;
      row.index = static_cast<uint32_t>(i);
    }
    std::vector<int64_t>().swap(step.rows);
  }
}

/// When the step's rows are used again.
void Oracle::tell_uses(LookaheadStep& decision) {
  Step& step = at(first_);
  if (many()) {
    decision.uses = std::move(step.held);
  } else {
    decision.uses.reserve(step.ids.size());
  }
  decision.last_use.reserve(step.ids.size());
  expired_.clear();
  for (size_t i = 0; i < step.ids.size(); ++i) {
    ids_.prefetch(step.ids, i + kAhead);
    const Rows::Id id = step.ids[i];
    const uint32_t further = ids_[id].use - static_cast<uint32_t>(first_);
    if (!many()) decision.uses.push_back({ids_.row(id), ids_[id].slot});
    decision.last_use.push_back(first_ + further);
    if (further == 0) expired_.push_back(id);
  }
  decision.critical = step.critical;
}

/// Those of the step's rows that may leave their slots and come back.
void Oracle::note_returns() {
  const Step& step = at(first_);
  for (size_t i = 0; i < step.ids.size(); ++i) {
    if (step.gaps[i] <= prefetch_ + 1) continue;  // stays in its slot in any case, or expires
    auto& heaps = at(first_ + step.gaps[i]).returning;
    heaps.resize(pools_.size());
    auto& returning = heaps[pool_of(holder_of(step.ids[i]))];
    returning.push_back(step.ids[i]);
    std::ranges::push_heap(returning, {}, [&](Rows::Id other) { return ids_.row(other); });
  }
}

void Oracle::leave(Rows::Id id, LookaheadStep& decision) {
  Known& row = ids_[id];
  decision.evict.push_back({ids_.row(id), row.slot, holder_of(id)});
  leave_slot(decision.evict.back());
  row.slot = kNoSlot;
  row.evicted = static_cast<uint32_t>(first_) + 1;
}

void Oracle::leave_slot(const RowInSlot& row) {
  Pool& pool = pools_[pool_of(row.holder)];
  pool.free_slots.push_back(row.slot);
  --pool.resident;
  --resident_;
}

/// Evicts the step's rows that the window does not use again.
void Oracle::expire(LookaheadStep& decision) {
  decision.evict.reserve(expired_.size());
  for (const Rows::Id id : expired_) leave(id, decision);
  ids_.remove(expired_);
}

/// Of rows that the step uses for the last time where they are.
void Oracle::hand_over(LookaheadStep& decision) {
  decision.hand_over = std::move(at(first_).hand_over);
  for (const HandOver& row : decision.hand_over) {
    const auto leaving = leaving_.find({row.from.row, row.from.holder});
    if (leaving == leaving_.end() || leaving->second.step != first_) continue;  // it comes back
    leaving_.erase(leaving);
    leave_slot(row.from);
  }
}

/// Evicts the rows of the farthest next use, until `wanted` more have slots.
Status Oracle::make_room(int32_t holder, int64_t wanted, LookaheadStep& decision) {
  const size_t p = pool_of(holder);
  const Pool& pool = pools_[p];
  if (pool.slots == 0) return {};
  const auto none = [&](int64_t step) {
    return at(step).returning.empty() || at(step).returning[p].empty();
  };
  int64_t from = std::min(first_ + lookahead_, seen() - 1);
  while (pool.resident + wanted > pool.slots) {
    while (from > first_ + prefetch_ + 1 && none(from)) --from;
    if (from <= first_ + prefetch_ + 1) {
      slots_had_ = pool.slots;
      return too_few(pool.resident + wanted);
    }
    auto& returning = at(from).returning[p];
    std::ranges::pop_heap(returning, {}, [&](Rows::Id other) { return ids_.row(other); });
    leave(returning.back(), decision);
    returning.pop_back();
  }
  return {};
}

/// Of one rank names the most that any known steps need, so that nobody tries again and again.
Status Oracle::too_few(int64_t needed) {
  slots_asked_ = needed;
  int64_t last = fetched_;
  if (!many()) {
    const int64_t from = std::max<int64_t>(0, fetched_ - prefetch_);
    std::vector<int32_t> uses(ids_.ids());
    int64_t rows = 0;
    for (int64_t step = from; step < linked_; ++step) {
      for (const Rows::Id id : at(step).ids) rows += uses[id]++ == 0 ? 1 : 0;
      if (step > from + prefetch_)
        for (const Rows::Id id : at(step - prefetch_ - 1).ids) rows -= --uses[id] == 0 ? 1 : 0;
      if (rows <= slots_asked_) continue;
      slots_asked_ = rows;
      last = step;
    }
  }
  const int64_t begin = std::max<int64_t>(0, last - prefetch_);
  return Status::BadRequest(
      fmt::format("{} rows have to be in slots for step{} {}, and there are {} slots", slots_asked_,
                  begin == last ? "" : fmt::format("s {} to", begin), last, slots_had_));
}

/// Gives slots to the rows of the next step that have none where they are needed. A row that left
/// the window is not known any more: it left more than L steps before its use.
Status Oracle::fetch(LookaheadStep& decision) {
  LookaheadStep fetched{.step = fetched_,
                        .filled_after = std::max(fetched_ - prefetch_, resumed_) - 1};
  std::vector<Rows::Id> wanted;
  std::vector<Arrival> arrivals;
  if (many()) {
    find_holders(wanted, arrivals);
    RECMILL_RETURN_IF_ERROR(make_rooms(wanted, arrivals, decision));
  } else {
    const auto& ids = at(fetched_).ids;
    for (size_t i = 0; i < ids.size(); ++i) {
      ids_.prefetch(ids, i + kAhead);
      if (ids_[ids[i]].slot == kNoSlot) wanted.push_back(ids[i]);
    }
    RECMILL_RETURN_IF_ERROR(make_room(0, std::ssize(wanted), decision));
  }
  for (const Rows::Id id : wanted) {
    const Known& row = ids_[id];
    const uint32_t ago = static_cast<uint32_t>(first_) + 1 - row.evicted;
    // A row that is not known left before the window, or when the last one ended.
    const int64_t left =
        row.evicted == 0 ? std::max(fetched_ - lookahead_, resumed_) - 1 : first_ - ago;
    fetched.fence = std::max(fetched.fence, left);
    fetched.fetch.push_back(take_slot(id));
  }
  for (const Arrival& row : arrivals) {
    const HandOver handed{row.from, take_slot(row.id), fetched_};
    if (leaves_at_once(row.last_use)) {
      decision.hand_over.push_back(handed);
    } else {
      at(row.last_use).hand_over.push_back(handed);
      leaving_[{row.from.row, row.from.holder}] = {row.from.slot, row.last_use};
    }
  }
  if (many()) note_holders();
  most_resident_ = std::max(most_resident_, resident_);
  fetches_.push_back(std::move(fetched));
  ++fetched_;
  return {};
}

/// Who has the rows of the next step: those that are in no slot are `wanted`, those that another
/// rank has arrive.
void Oracle::find_holders(std::vector<Rows::Id>& wanted, std::vector<Arrival>& arrivals) {
  const Step& step = at(fetched_);
  for (size_t i = 0; i < step.ids.size(); ++i) {
    const Rows::Id id = step.ids[i];
    const Held before = held_[id];
    const auto users = step.uses.users(static_cast<int64_t>(i));
    const int32_t holder = next_holder(before.holder, users);
    if (design_ == CacheDesign::forward) count_sent(before.holder, holder, users);
    held_[id] = {holder, static_cast<uint32_t>(fetched_)};
    if (ids_[id].slot == kNoSlot) {
      wanted.push_back(id);
    } else if (holder != before.holder) {
      const int64_t last_use = fetched_ - (static_cast<uint32_t>(fetched_) - before.use);
      const RowInSlot from{ids_.row(id), ids_[id].slot, before.holder};
      arrivals.push_back({id, from, last_use});
      // What leaves at once leaves its slot to those that come.
      if (leaves_at_once(last_use)) leave_slot(from);
    }
  }
}

Status Oracle::make_rooms(std::span<const Rows::Id> wanted, std::span<const Arrival> arrivals,
                          LookaheadStep& decision) {
  std::vector<int64_t> rows(pools_.size());
  for (const Rows::Id id : wanted) ++rows[pool_of(held_[id].holder)];
  for (const Arrival& row : arrivals)
    if (!leaving_.contains({row.from.row, held_[row.id].holder}))
      ++rows[pool_of(held_[row.id].holder)];
  for (int32_t rank = 0; rank < ranks_; ++rank)
    RECMILL_RETURN_IF_ERROR(make_room(rank, rows[pool_of(rank)], decision));
  return make_room(kEverywhere, rows.back(), decision);
}

/// BagPipe, section 3.3; `forward` is ours.
int32_t Oracle::next_holder(int32_t before, std::span<const int32_t> users) const {
  switch (design_) {
    case CacheDesign::replicated:
      return kEverywhere;
    case CacheDesign::partitioned:
      return rank_;
    case CacheDesign::lrpp:
      return users.size() == 1 && (before == kNobody || before == users[0]) ? users[0]
                                                                            : kEverywhere;
    case CacheDesign::forward:
      break;
  }
  if (std::ranges::binary_search(users, before)) return before;
  // The one that has sent least.
  return *std::ranges::min_element(users, {}, [&](int32_t rank) { return sent_[rank]; });
}

/// Of `forward`: weights to the other users, sums from them, and the row from who had it.
void Oracle::count_sent(int32_t before, int32_t holder, std::span<const int32_t> users) {
  if (before != kNobody && before != holder) ++sent_[before];
  for (const int32_t user : users) ++sent_[user];
  sent_[holder] += std::ssize(users) - 2;
}

/// Where the rows of the next step will be.
void Oracle::note_holders() {
  Step& step = at(fetched_);
  step.held.reserve(step.ids.size());
  for (const Rows::Id id : step.ids)
    step.held.push_back({ids_.row(id), ids_[id].slot, held_[id].holder});
  step.uses = {};
}

RowInSlot Oracle::take_slot(Rows::Id id) {
  const int32_t holder = holder_of(id);
  if (const auto left = leaving_.find({ids_.row(id), holder}); left != leaving_.end()) {
    const int32_t slot = left->second.slot;
    leaving_.erase(left);
    ids_[id].slot = slot;
    return {ids_.row(id), slot, holder};
  }
  Pool& pool = pools_[pool_of(holder)];
  int32_t slot = pool.used_slots;
  if (pool.free_slots.empty()) {
    ++pool.used_slots;
  } else {
    slot = pool.free_slots.back();
    pool.free_slots.pop_back();
  }
  ++pool.resident;
  ++resident_;
  ids_[id].slot = slot;
  return {ids_.row(id), slot, holder};
}

int64_t Oracle::bytes() const {
  int64_t bytes = ids_.bytes() + static_cast<int64_t>(held_.capacity() * sizeof(Held));
  for (const Pool& pool : pools_)
    bytes += static_cast<int64_t>(pool.free_slots.capacity() * sizeof(int32_t));
  for (const Step& step : steps_) {
    bytes += static_cast<int64_t>(
        step.rows.capacity() * sizeof(int64_t) + step.ids.capacity() * sizeof(Rows::Id) +
        step.gaps.capacity() * sizeof(uint16_t) + step.held.capacity() * sizeof(RowInSlot) +
        step.hand_over.capacity() * sizeof(HandOver) + step.uses.bytes());
    for (const auto& heap : step.returning)
      bytes += static_cast<int64_t>(heap.capacity() * sizeof(Rows::Id));
  }
  for (const LookaheadStep& fetched : fetches_)
    bytes += static_cast<int64_t>(fetched.fetch.capacity() * sizeof(RowInSlot));
  return bytes;
}

}  // namespace recmill::lookahead
