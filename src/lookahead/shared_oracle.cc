// SPDX-License-Identifier: Apache-2.0
#include "lookahead/shared_oracle.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "lookahead/cache_sizer.h"

namespace recmill::lookahead {

std::vector<StepUses> split_uses(const StepUses& uses, const DeciderOf& decider_of, int ranks) {
  std::vector<StepUses> parts(static_cast<size_t>(ranks));
  for (int64_t i = 0; i < uses.count(); ++i) {
    StepUses& part = parts[decider_of(uses.rows[i])];
    const auto users = uses.users(i);
    part.rows.push_back(uses.rows[i]);
    part.begins.push_back(std::ssize(part.ranks));
    part.ranks.insert(part.ranks.end(), users.begin(), users.end());
  }
  for (StepUses& part : parts) part.begins.push_back(std::ssize(part.ranks));
  return parts;
}

int64_t copied_part(std::span<const StepUses> window, int ranks, int64_t slots) {
  std::map<int64_t, int32_t> users;  // kEverywhere: several
  int64_t copied = 0;
  for (const StepUses& step : window) {
    for (int64_t i = 0; i < step.count(); ++i) {
      const auto of = step.users(i);
      int32_t& user = users.emplace(step.rows[i], of[0]).first->second;
      if (user == kEverywhere || (of.size() == 1 && of[0] == user)) continue;
      user = kEverywhere;
      ++copied;
    }
  }
  return copied_share(copied, std::ssize(users) - copied, ranks, slots);
}

SharedOracle::SharedOracle(const OracleOptions& options, DeciderOf decider_of)
    : options_(options), decider_of_(std::move(decider_of)) {
  RECMILL_CHECK(options.slots == 0 || options.slots >= options.ranks);
  if (options_.design != CacheDesign::lrpp || options_.slots == 0) begin();
}

/// Where slots are in two parts, the first window says how many are in each.
void SharedOracle::begin() {
  OracleOptions of = options_;
  of.slots /= options_.ranks;
  of.copied_slots = of.slots;
  if (options_.design == CacheDesign::lrpp && options_.slots > 0) {
    const auto known = std::min<size_t>(window_.size(), static_cast<size_t>(of.lookahead) + 1);
    of.copied_slots = copied_part(std::span(window_).first(known), of.ranks, of.slots);
    of.slots = std::max<int64_t>(1, of.slots - of.copied_slots);
  }
  std::vector<std::vector<StepUses>> parts(static_cast<size_t>(options_.ranks));
  for (const StepUses& uses : window_) {
    auto split = split_uses(uses, decider_of_, options_.ranks);
    for (size_t rank = 0; rank < split.size(); ++rank)
      parts[rank].push_back(std::move(split[rank]));
  }
  for (int rank = 0; rank < options_.ranks; ++rank) {
    of.rank = rank;
    oracles_.emplace_back(of);
    for (StepUses& uses : parts[rank]) oracles_.back().see(std::move(uses));
  }
  window_.clear();
}

void SharedOracle::see(StepUses uses) {
  if (oracles_.empty()) {
    window_.push_back(std::move(uses));
    if (std::ssize(window_) > options_.lookahead) begin();
    return;
  }
  auto parts = split_uses(uses, decider_of_, options_.ranks);
  for (size_t rank = 0; rank < parts.size(); ++rank) oracles_[rank].see(std::move(parts[rank]));
}

void SharedOracle::end() {
  if (oracles_.empty()) begin();
  for (Oracle& oracle : oracles_) oracle.end();
}

/// Deciders take turns in the numbers of slots.
RowInSlot SharedOracle::of_all(RowInSlot row, size_t decider) const {
  row.slot = row.slot * options_.ranks + static_cast<int32_t>(decider);
  return row;
}

Result<LookaheadStep> SharedOracle::decide() {
  LookaheadStep all;
  const auto take = [this](const auto& from, size_t decider, auto& to) {
    for (const RowInSlot& row : from) to.push_back(of_all(row, decider));
  };
  for (size_t rank = 0; rank < oracles_.size(); ++rank) {
    RECMILL_ASSIGN_OR_RETURN(const LookaheadStep part, oracles_[rank].decide());
    all.step = part.step;
    all.filled_after = part.filled_after;
    all.fence = std::max(all.fence, part.fence);
    all.critical += part.critical;
    take(part.uses, rank, all.uses);
    take(part.fetch, rank, all.fetch);
    take(part.evict, rank, all.evict);
    all.last_use.insert(all.last_use.end(), part.last_use.begin(), part.last_use.end());
    for (const HandOver& row : part.hand_over)
      all.hand_over.push_back({of_all(row.from, rank), of_all(row.to, rank), row.step});
  }
  // Each row has one decider.
  std::vector<std::pair<RowInSlot, int64_t>> uses;
  for (size_t i = 0; i < all.uses.size(); ++i) uses.emplace_back(all.uses[i], all.last_use[i]);
  std::ranges::sort(uses);
  for (size_t i = 0; i < uses.size(); ++i) std::tie(all.uses[i], all.last_use[i]) = uses[i];
  std::ranges::sort(all.fetch);
  std::ranges::sort(all.evict);
  std::ranges::sort(all.hand_over);
  return all;
}

}  // namespace recmill::lookahead
