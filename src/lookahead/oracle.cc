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
      slots_(options.slots) {
  RECMILL_CHECK(lookahead_ >= 0 && lookahead_ <= kMostLookahead && prefetch_ >= 0 && slots_ >= 0);
}

void Oracle::see(std::span<const int64_t> rows) {
  RECMILL_CHECK(!ended_);
  steps_.emplace_back().rows.assign(rows.begin(), rows.end());
}

bool Oracle::ready() const {
  const int64_t last = first_ + std::max(lookahead_, prefetch_ + 1);
  return ended_ ? first_ < seen() : last < seen();
}

Result<LookaheadStep> Oracle::decide() {
  RECMILL_CHECK(ready());
  link(first_ + lookahead_);
  LookaheadStep decision{.step = first_, .filled_after = first_ - prefetch_ - 1};
  while (fetched_ <= std::min(first_ + prefetch_, seen() - 1))  // of the first decision alone
    RECMILL_RETURN_IF_ERROR(fetch(decision));
  decision.fetch = std::move(fetches_.front().fetch);
  decision.fence = fetches_.front().fence;
  fetches_.pop_front();
  tell_uses(decision);
  if (slots_ > 0) note_returns();
  expire(decision);
  link(first_ + prefetch_ + 1);  // with P = L that is beyond the window
  if (fetched_ < seen()) RECMILL_RETURN_IF_ERROR(fetch(decision));
  std::ranges::sort(decision.evict);
  steps_.pop_front();
  ++first_;
  return decision;
}

/// Makes the uses of steps up to `last` known to the uses before them.
void Oracle::link(int64_t last) {
  for (; linked_ <= std::min(last, seen() - 1); ++linked_) {
    Step& step = at(linked_);
    step.ids.resize(step.rows.size());
    if (slots_ > 0) step.gaps.assign(step.rows.size(), 0);
    ids_.find_or_add(step.rows, step.ids, fresh_);
    const auto use = static_cast<uint32_t>(linked_);
    for (size_t i = 0; i < step.ids.size(); ++i) {
      Known& row = ids_[step.ids[i]];
      if (!fresh_[i]) {
        const uint32_t gap = use - row.use;
        Step& before = at(linked_ - gap);
        if (gap == 1) ++before.critical;
        if (slots_ > 0) before.gaps[row.index] = static_cast<uint16_t>(gap);
      }
      row.use = use;
      row.index = static_cast<uint32_t>(i);
    }
    std::vector<int64_t>().swap(step.rows);
  }
}

/// When the step's rows are used again.
void Oracle::tell_uses(LookaheadStep& decision) {
  const Step& step = at(first_);
  decision.uses.reserve(step.ids.size());
  decision.last_use.reserve(step.ids.size());
  expired_.clear();
  for (size_t i = 0; i < step.ids.size(); ++i) {
    ids_.prefetch(step.ids, i + kAhead);
    const Rows::Id id = step.ids[i];
    const uint32_t further = ids_[id].use - static_cast<uint32_t>(first_);
    decision.uses.push_back({ids_.row(id), ids_[id].slot});
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
    auto& returning = at(first_ + step.gaps[i]).returning;
    returning.push_back(step.ids[i]);
    std::ranges::push_heap(returning, {}, [&](Rows::Id other) { return ids_.row(other); });
  }
}

void Oracle::leave(Rows::Id id, LookaheadStep& decision) {
  Known& row = ids_[id];
  decision.evict.push_back({ids_.row(id), row.slot});
  free_slots_.push_back(row.slot);
  row.slot = kNoSlot;
  row.evicted = static_cast<uint32_t>(first_) + 1;
  --resident_;
}

/// Evicts the step's rows that the window does not use again.
void Oracle::expire(LookaheadStep& decision) {
  decision.evict.reserve(expired_.size());
  for (const Rows::Id id : expired_) leave(id, decision);
  ids_.remove(expired_);
}

/// Evicts the rows of the farthest next use, until `wanted` more have slots.
Status Oracle::make_room(int64_t wanted, LookaheadStep& decision) {
  int64_t from = std::min(first_ + lookahead_, seen() - 1);
  while (resident_ + wanted > slots_) {
    while (from > first_ + prefetch_ + 1 && at(from).returning.empty()) --from;
    if (from <= first_ + prefetch_ + 1) {
      slots_asked_ = resident_ + wanted;
      const int64_t begin = std::max<int64_t>(0, fetched_ - prefetch_);
      return Status::BadRequest(fmt::format(
          "{} rows have to be in slots for step{} {}, and there are {} slots", slots_asked_,
          begin == fetched_ ? "" : fmt::format("s {} to", begin), fetched_, slots_));
    }
    auto& returning = at(from).returning;
    std::ranges::pop_heap(returning, {}, [&](Rows::Id other) { return ids_.row(other); });
    leave(returning.back(), decision);
    returning.pop_back();
  }
  return {};
}

/// Gives slots to the rows of the next step that have none. A row that left the window is not known
/// any more: it left more than L steps before its use.
Status Oracle::fetch(LookaheadStep& decision) {
  LookaheadStep fetched{fetched_};
  std::vector<Rows::Id> wanted;
  const auto& ids = at(fetched_).ids;
  for (size_t i = 0; i < ids.size(); ++i) {
    ids_.prefetch(ids, i + kAhead);
    if (ids_[ids[i]].slot == kNoSlot) wanted.push_back(ids[i]);
  }
  if (slots_ > 0) RECMILL_RETURN_IF_ERROR(make_room(std::ssize(wanted), decision));
  for (const Rows::Id id : wanted) {
    Known& row = ids_[id];
    const uint32_t ago = static_cast<uint32_t>(first_) + 1 - row.evicted;
    fetched.fence =
        std::max(fetched.fence, row.evicted == 0 ? fetched_ - lookahead_ - 1 : first_ - ago);
    row.slot = take_slot();
    fetched.fetch.push_back({ids_.row(id), row.slot});
  }
  resident_ += std::ssize(wanted);
  most_resident_ = std::max(most_resident_, resident_);
  fetches_.push_back(std::move(fetched));
  ++fetched_;
  return {};
}

int32_t Oracle::take_slot() {
  if (free_slots_.empty()) return used_slots_++;
  const int32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

int64_t Oracle::bytes() const {
  int64_t bytes = ids_.bytes() + static_cast<int64_t>(free_slots_.capacity() * sizeof(int32_t));
  for (const Step& step : steps_)
    bytes +=
        static_cast<int64_t>(step.rows.capacity() * sizeof(int64_t) +
                             (step.ids.capacity() + step.returning.capacity()) * sizeof(Rows::Id) +
                             step.gaps.capacity() * sizeof(uint16_t));
  for (const LookaheadStep& fetched : fetches_)
    bytes += static_cast<int64_t>(fetched.fetch.capacity() * sizeof(RowInSlot));
  return bytes;
}

}  // namespace recmill::lookahead
