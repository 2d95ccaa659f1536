// SPDX-License-Identifier: Apache-2.0
#include "lookahead/cache_decider.h"

#include <algorithm>
#include <utility>

namespace recmill::lookahead {

namespace {

template <typename Part, typename Use>
void each_list(Part& part, const Use& use) {
  use(part.uses);
  use(part.held);
  use(part.lent);
  use(part.early_out);
  use(part.early_in);
  use(part.leave);
  for (auto* moves : {&part.critical, &part.rest, &part.before}) {
    use(moves->out);
    use(moves->in);
  }
}

}  // namespace

CacheDecider::CacheDecider(const SlotTables& tables, int rank, int ranks, CacheDesign design,
                           bool early)
    : tables_(tables),
      rank_(rank),
      ranks_(ranks),
      design_(design),
      early_(early),
      rows_seen_(static_cast<size_t>(tables.count())),
      copied_seen_(rows_seen_) {}

void CacheDecider::see(StepUses uses) {
  RECMILL_CHECK(!ended_);
  if (oracles_.empty()) count(uses);
  std::vector<StepUses> parts(static_cast<size_t>(tables_.count()));
  int table = 0;
  for (int64_t i = 0; i < uses.count(); ++i) {
    while (uses.rows[i] >= tables_.begin(table + 1)) ++table;
    StepUses& part = parts[tables_.slot_table_of(table)];
    part.rows.push_back(uses.rows[i]);
    part.begins.push_back(std::ssize(part.ranks));
    const auto users = uses.users(i);
    part.ranks.insert(part.ranks.end(), users.begin(), users.end());
  }
  for (size_t k = 0; k < parts.size(); ++k) {
    parts[k].begins.push_back(std::ssize(parts[k].ranks));
    if (!oracles_.empty()) oracles_[k].see(parts[k]);
  }
  uses_.push_back(std::move(parts));
}

void CacheDecider::end() {
  ended_ = true;
  for (Oracle& oracle : oracles_) oracle.end();
}

void CacheDecider::go_on() {
  ended_ = false;
  for (Oracle& oracle : oracles_) oracle.go_on();
}

void CacheDecider::choose(const CacheSize& size) {
  RECMILL_CHECK(oracles_.empty());
  size_ = size;
  known_ = {};
  for (size_t k = 0; k < size.slots.size(); ++k) {
    oracles_.emplace_back(OracleOptions{.lookahead = size.lookahead,
                                        .prefetch = size.prefetch,
                                        .slots = size.slots[k] / ranks_,
                                        .ranks = ranks_,
                                        .design = design_,
                                        .rank = rank_,
                                        .copied_slots = size.copied_slots[k] / ranks_});
    for (const auto& parts : uses_) oracles_[k].see(parts[k]);
    if (ended_) oracles_[k].end();
  }
}

void CacheDecider::count(const StepUses& uses) {
  std::vector<KnownRows<int32_t>::Id> ids(uses.rows.size());
  std::vector<bool> fresh;
  known_.find_or_add(uses.rows, ids, fresh);
  for (int64_t i = 0; i < uses.count(); ++i) {
    const auto users = uses.users(i);
    const int k = tables_.slot_table_of_row(uses.rows[i]);
    int32_t& user = known_[ids[i]];
    if (fresh[i]) {
      ++rows_seen_[k];
      user = users[0];
    }
    if (user == kEverywhere || (users.size() == 1 && users[0] == user)) continue;
    user = kEverywhere;
    ++copied_seen_[k];
  }
}

int64_t CacheDecider::bytes() const {
  int64_t bytes = 0;
  for (const Oracle& oracle : oracles_) bytes += oracle.bytes();
  for (const auto& parts : uses_)
    for (const StepUses& uses : parts) bytes += uses.bytes();
  return bytes;
}

/// Where a share is in two parts, as many more as keep their proportion.
int64_t CacheDecider::slots_asked() const {
  const int64_t share = (size_.slots[failed_] + size_.copied_slots[failed_]) / ranks_;
  const int64_t had = oracles_[failed_].slots_had();
  return (oracles_[failed_].slots_asked() * share + had - 1) / had;
}

RowInSlot CacheDecider::of_all(size_t slot_table, RowInSlot row) const {
  const auto& slots = row.holder == kEverywhere ? size_.copied_slots : size_.slots;
  row.slot += static_cast<int32_t>(rank_ * (slots[slot_table] / ranks_));
  return row;
}

void CacheDecider::number_slots(size_t slot_table, LookaheadStep& decision) const {
  for (auto* rows : {&decision.uses, &decision.evict})
    for (RowInSlot& row : *rows) row = of_all(slot_table, row);
  for (HandOver& row : decision.hand_over) {
    row.from = of_all(slot_table, row.from);
    row.to = of_all(slot_table, row.to);
  }
}

/// Ends in parts whose lists ascend.
Result<std::vector<RankStep>> CacheDecider::next() {
  RECMILL_CHECK(ready());
  std::vector<RankStep> parts(static_cast<size_t>(ranks_));
  for (size_t k = 0; k < oracles_.size(); ++k) {
    auto made = oracles_[k].decide();
    failed_ = static_cast<int>(k);
    if (!made.ok()) return made.status();
    LookaheadStep decision = *std::move(made);
    number_slots(k, decision);
    for (RankStep& part : parts) part.step = decision.step;
    const auto& fetches = oracles_[k].fetches();
    const bool any = !fetches.empty() && fetches.back().filled_after == decision.step;
    const auto next = any ? std::span(fetches.back().fetch) : std::span<const RowInSlot>();
    tell_uses(decision, uses_.front()[k], parts);
    evict(decision, next, parts);
    hand_over(decision, parts);
    lend_early(k, decision, next, parts);
    if (decision.step == oracles_[k].began()) {
      for (RankStep& part : parts) part.begins = true;
      fetch(k, decision.fetch, &RankStep::before, parts);
      for (const LookaheadStep& ahead : fetches)
        if (ahead.filled_after < decision.step) fetch(k, ahead.fetch, &RankStep::before, parts);
    }
    fetch(k, next, &RankStep::rest, parts);
    if (any)
      for (RankStep& part : parts) part.fence = std::max(part.fence, fetches.back().fence);
  }
  uses_.pop_front();
  for (RankStep& part : parts) {
    each_list(part, [](auto& list) { std::ranges::sort(list); });
  }
  return parts;
}

void CacheDecider::tell_uses(const LookaheadStep& decision, const StepUses& uses,
                             std::vector<RankStep>& parts) const {
  for (int64_t i = 0; i < uses.count(); ++i) {
    const RowInSlot& row = decision.uses[i];
    for (const int32_t user : uses.users(i)) parts[user].uses.push_back(row);
    if (row.holder != kEverywhere) {
      parts[row.holder].held.push_back(row);
      for (const int32_t user : uses.users(i))
        if (user != row.holder) parts[row.holder].lent.push_back({user, row});
    } else {
      for (RankStep& part : parts) part.held.push_back(row);
    }
  }
}

/// Of a row that all have, its home keeps its own copy. A row that is fetched at the end of the
/// same step (P = L) comes home before.
void CacheDecider::evict(const LookaheadStep& decision, std::span<const RowInSlot> fetched,
                         std::vector<RankStep>& parts) const {
  for (const RowInSlot& row : decision.evict) {
    const auto again = std::ranges::lower_bound(fetched, row.row, {}, &RowInSlot::row);
    const bool first = again != fetched.end() && again->row == row.row;
    for (RankStep& part : parts) part.any_critical = part.any_critical || first;
    const auto moves = first ? &RankStep::critical : &RankStep::rest;
    const int32_t from = row.holder == kEverywhere ? rank_ : row.holder;
    (parts[from].*moves).out.push_back({rank_, RowMove::Kind::evict, row});
    (parts[rank_].*moves).in.push_back({from, RowMove::Kind::evict, {row.row}});
    for (int32_t rank = 0; rank < ranks_; ++rank)
      if (row.holder == kEverywhere || rank == from) parts[rank].leave.push_back(row);
  }
}

void CacheDecider::hand_over(const LookaheadStep& decision, std::vector<RankStep>& parts) const {
  for (const auto& [from, to, needed] : decision.hand_over) {
    const auto moves = needed == decision.step + 1 ? &RankStep::critical : &RankStep::rest;
    parts[from.holder].leave.push_back(from);
    for (int32_t rank = 0; rank < ranks_; ++rank) {
      if (to.holder != kEverywhere && to.holder != rank) continue;
      (parts[from.holder].*moves).out.push_back({rank, RowMove::Kind::hand_over, from});
      (parts[rank].*moves).in.push_back({from.holder, RowMove::Kind::hand_over, to});
    }
    if (needed == decision.step + 1)
      for (RankStep& part : parts) part.any_critical = true;
  }
}

/// Of P = 0 nobody knows yet who will have the rows of the step after the next one.
void CacheDecider::lend_early(size_t slot_table, const LookaheadStep& decision,
                              std::span<const RowInSlot> fetched,
                              std::vector<RankStep>& parts) const {
  if (!early_ || ranks_ == 1 || size_.prefetch == 0 || uses_.size() < 3) return;
  const StepUses& next = uses_[1][slot_table];
  const StepUses& later = uses_[2][slot_table];
  const auto holders = oracles_[slot_table].holders(decision.step + 2);
  const auto arrives = [&](int64_t row) {  // at the end of the step that is decided
    const auto comes = std::ranges::lower_bound(fetched, row, {}, &RowInSlot::row);
    if (comes != fetched.end() && comes->row == row) return true;
    const auto moved = std::ranges::lower_bound(decision.hand_over, row, {},
                                                [](const HandOver& of) { return of.from.row; });
    return moved != decision.hand_over.end() && moved->from.row == row;
  };
  for (int64_t i = 0; i < later.count(); ++i) {
    if (holders[i].holder == kEverywhere || arrives(later.rows[i])) continue;
    if (std::ranges::binary_search(next.rows, later.rows[i])) continue;
    const RowInSlot row = of_all(slot_table, holders[i]);
    for (const int32_t user : later.users(i)) {
      if (user == row.holder) continue;
      parts[row.holder].early_out.push_back({user, row});
      parts[user].early_in.push_back(row);
    }
  }
}

void CacheDecider::fetch(size_t slot_table, std::span<const RowInSlot> rows,
                         RowMoves RankStep::*moves, std::vector<RankStep>& parts) const {
  for (const RowInSlot& fetched : rows) {
    const RowInSlot row = of_all(slot_table, fetched);
    for (int32_t rank = 0; rank < ranks_; ++rank) {
      if (row.holder != kEverywhere && row.holder != rank) continue;
      (parts[rank_].*moves).out.push_back({rank, RowMove::Kind::fetch, {row.row}});
      (parts[rank].*moves).in.push_back({rank_, RowMove::Kind::fetch, row});
    }
  }
}

RankStep merged(std::span<const RankStep> parts) {
  RankStep all;
  const auto take = [](const auto& from, auto& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  const auto take_moves = [&](const RowMoves& from, RowMoves& to) {
    take(from.out, to.out);
    take(from.in, to.in);
  };
  for (const RankStep& part : parts) {
    all.step = part.step;
    all.any_critical = all.any_critical || part.any_critical;
    all.begins = all.begins || part.begins;
    all.fence = std::max(all.fence, part.fence);
    take(part.uses, all.uses);
    take(part.held, all.held);
    take(part.lent, all.lent);
    take(part.early_out, all.early_out);
    take(part.early_in, all.early_in);
    take(part.leave, all.leave);
    take_moves(part.critical, all.critical);
    take_moves(part.rest, all.rest);
    take_moves(part.before, all.before);
  }
  each_list(all, [](auto& list) { std::ranges::sort(list); });
  return all;
}

}  // namespace recmill::lookahead
