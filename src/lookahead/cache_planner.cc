// SPDX-License-Identifier: Apache-2.0
#include "lookahead/cache_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/saturating.h"

namespace recmill::lookahead {
CachePlanner::CachePlanner(const SlotTables& tables, std::vector<int64_t> slot_bytes,
                           const CacheOptions& options)
    : tables_(tables),
      sizer_(tables, std::move(slot_bytes), options),
      counts_(static_cast<size_t>(tables.count())) {}

int64_t CachePlanner::most_bytes(int64_t lookahead, int64_t prefetch, int64_t step_rows,
                                 int64_t window_rows) {
  constexpr int64_t kOfARow = 80;   // what is known of it, where it is found, a free slot, an id
  constexpr int64_t kOfAUse = 16;   // id, gap, and a place among those that return
  constexpr int64_t kOfAPlan = 56;  // of a row that is fetched, used and evicted
  const int64_t known = std::max(lookahead, std::min(prefetch, lookahead) + 1) + 1;
  const int64_t plans = std::min(prefetch, lookahead) + 3;  // with those made and in use
  return saturating_sum({saturating_product({window_rows, kOfARow}),
                         saturating_product({known, step_rows, kOfAUse}),
                         saturating_product({plans, step_rows, kOfAPlan})});
}

int64_t CachePlanner::bytes() const {
  int64_t bytes = 0;
  for (const Oracle& oracle : oracles_) bytes += oracle.bytes();
  return bytes;
}

void CachePlanner::go_on() {
  if (std::exchange(told_end_, false))
    for (Oracle& oracle : oracles_) oracle.go_on();
  ended_ = false;
}

void CachePlanner::see(std::vector<int64_t> rows, int64_t batch_bytes) {
  RECMILL_CHECK(!ended_);
  if (!oracles_.empty()) return give_oracles(rows);
  count_window(rows, batch_bytes);
  seen_.push_back(std::move(rows));
}

void CachePlanner::count_window(std::span<const int64_t> rows, int64_t batch_bytes) {
  std::vector<Rows::Number> numbers(rows.size());
  known_.find(rows, numbers);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (numbers[i] != Rows::kNone) continue;
    known_.add(rows[i], static_cast<Rows::Number>(known_.count()));
    ++counts_[tables_.slot_table_of(tables_.table_of(rows[i]))];
  }
  sizer_.see(std::ssize(rows), counts_, {}, batch_bytes);
}

Status CachePlanner::choose() {
  RECMILL_ASSIGN_OR_RETURN(size_, sizer_.choose());
  for (int k = 0; k < tables_.count(); ++k) {
    // Where every row has a slot none ever has to leave early: as if there were no limit.
    const bool all_fit = size_.slots[k] == tables_.rows_of(k);
    oracles_.emplace_back(
        OracleOptions{size_.lookahead, size_.prefetch, all_fit ? 0 : size_.slots[k]});
  }
  for (const auto& rows : std::exchange(seen_, {})) give_oracles(rows);
  known_ = {};
  return {};
}

void CachePlanner::give_oracles(std::span<const int64_t> rows) {
  if (oracles_.size() == 1) return oracles_[0].see(rows);
  std::vector<std::vector<int64_t>> parts(oracles_.size());
  size_t begin = 0;
  for (int t = 0; t < tables_.tables(); ++t) {
    const auto end = static_cast<size_t>(
        std::ranges::lower_bound(rows.begin() + begin, rows.end(), tables_.begin(t + 1)) -
        rows.begin());
    auto& part = parts[tables_.slot_table_of(t)];
    part.insert(part.end(), rows.begin() + begin, rows.begin() + end);
    begin = end;
  }
  for (size_t k = 0; k < oracles_.size(); ++k) oracles_[k].see(parts[k]);
}

Result<std::shared_ptr<const LookaheadStep>> CachePlanner::next() {
  using Plan = std::shared_ptr<const LookaheadStep>;
  if (oracles_.empty()) {
    if (!sizer_.is_full(ended_) || seen_.empty()) return Plan();
    RECMILL_RETURN_IF_ERROR(choose());
  }
  if (ended_ && !std::exchange(told_end_, true))
    for (Oracle& oracle : oracles_) oracle.end();
  if (oracles_.empty() || !oracles_[0].ready()) return Plan();
  std::vector<LookaheadStep> decisions;
  for (int k = 0; k < tables_.count(); ++k) {
    auto decision = oracles_[k].decide();
    if (!decision.ok()) return sizer_.too_few(decision.status(), oracles_[k].slots_asked(), k);
    decisions.push_back(*std::move(decision));
  }
  if (decisions.size() == 1) return std::make_shared<const LookaheadStep>(std::move(decisions[0]));
  return std::make_shared<const LookaheadStep>(merged(decisions));
}

LookaheadStep CachePlanner::merged(std::span<const LookaheadStep> decisions) const {
  LookaheadStep all{.step = decisions[0].step, .filled_after = decisions[0].filled_after};
  struct Cursor {
    size_t use = 0, fetch = 0, evict = 0;
  };
  std::vector<Cursor> cursors(decisions.size());
  const auto take = [](const std::vector<RowInSlot>& from, size_t& at, int64_t end, auto&& put) {
    for (; at < from.size() && from[at].row < end; ++at) put(at);
  };
  for (int t = 0; t < tables_.tables(); ++t) {
    const auto k = static_cast<size_t>(tables_.slot_table_of(t));
    const LookaheadStep& of = decisions[k];
    const int64_t end = tables_.begin(t + 1);
    take(of.uses, cursors[k].use, end, [&](size_t i) {
      all.uses.push_back(of.uses[i]);
      all.last_use.push_back(of.last_use[i]);
    });
    take(of.fetch, cursors[k].fetch, end, [&](size_t i) { all.fetch.push_back(of.fetch[i]); });
    take(of.evict, cursors[k].evict, end, [&](size_t i) { all.evict.push_back(of.evict[i]); });
  }
  for (const LookaheadStep& of : decisions) {
    all.fence = std::max(all.fence, of.fence);
    all.critical += of.critical;
  }
  return all;
}

}  // namespace recmill::lookahead
