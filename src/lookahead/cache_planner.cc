// SPDX-License-Identifier: Apache-2.0
#include "lookahead/cache_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/saturating.h"

namespace recmill::lookahead {
namespace {

/// (a * b + more) / c, rounded down.
int64_t scaled(int64_t a, int64_t b, int64_t c, int64_t more = 0) {
  const auto quotient = (static_cast<__int128>(a) * b + more) / c;
  return static_cast<int64_t>(std::min<__int128>(quotient, std::numeric_limits<int64_t>::max()));
}

}  // namespace

CachePlanner::CachePlanner(const SlotTables& tables, std::vector<int64_t> slot_bytes,
                           const CacheOptions& options)
    : tables_(tables), slot_bytes_(std::move(slot_bytes)), options_(options) {
  RECMILL_CHECK(std::ssize(slot_bytes_) == tables.count());
}

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

void CachePlanner::see(std::vector<int64_t> rows, int64_t batch_bytes) {
  RECMILL_CHECK(!ended_);
  if (!oracles_.empty()) return give_oracles(rows);
  if (seen_.empty()) batch_bytes_ = batch_bytes;
  count_window(rows);
  seen_.push_back(std::move(rows));
}

void CachePlanner::count_window(std::span<const int64_t> rows) {
  RowCounts counts =
      known_after_.empty() ? RowCounts(static_cast<size_t>(tables_.count())) : known_after_.back();
  std::vector<Rows::Number> numbers(rows.size());
  known_.find(rows, numbers);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (numbers[i] != Rows::kNone) continue;
    known_.add(rows[i], static_cast<Rows::Number>(known_.count()));
    ++counts[tables_.slot_table_of(tables_.table_of(rows[i]))];
  }
  known_after_.push_back(std::move(counts));
}

int64_t CachePlanner::bytes_of(const RowCounts& rows) const {
  int64_t bytes = 0;
  for (size_t k = 0; k < rows.size(); ++k) bytes += rows[k] * slot_bytes_[k];
  return bytes;
}

/// Batches of so many steps, those that are fetched ahead beside them, and slots for their rows.
int64_t CachePlanner::window_bytes(int64_t steps) const {
  const int64_t ahead = std::min(options_.prefetch, steps - 1);
  const int64_t slots = bytes_of(known_after_[static_cast<size_t>(steps - 1)]);
  return (steps + ahead) * batch_bytes_ + std::min(slots, options_.cache.value_or(slots));
}

bool CachePlanner::window_is_full() const {
  const int64_t seen = std::ssize(seen_);
  if (ended_) return true;
  if (seen == 0) return false;
  const int64_t lookahead = options_.lookahead.value_or(kDefaultMostLookahead);
  const int64_t enough = 1 + std::max(lookahead, std::min(options_.prefetch, lookahead) + 1);
  return seen >= enough || (!options_.lookahead && window_bytes(seen) > options_.memory);
}

Status CachePlanner::choose() {
  int64_t steps = std::ssize(seen_);
  if (!options_.lookahead) {
    while (steps > 1 && window_bytes(steps) > options_.memory) --steps;
    if (window_bytes(steps) > options_.memory)
      return Status::BadRequest(fmt::format(
          "lookahead.cache: one batch and the rows that it looks up need {} bytes, and {} are free",
          window_bytes(steps), options_.memory));
  }
  // Of a stream that ended before its window was full, the window would have gone on.
  const bool cut = steps < std::ssize(seen_);
  const int64_t most = options_.lookahead.value_or(kDefaultMostLookahead);
  size_.lookahead = cut ? std::min(steps - 1, most) : most;
  size_.prefetch = std::min(options_.prefetch, size_.lookahead);
  size_.batches = std::min<int64_t>(size_.lookahead + 1, std::ssize(seen_));
  for (int64_t x = 0; x < size_.batches; ++x) size_.distinct += std::ssize(seen_[x]);
  window_rows_ = known_after_[static_cast<size_t>(size_.batches - 1)];
  size_.rows = std::accumulate(window_rows_.begin(), window_rows_.end(), int64_t{0});
  const int64_t batches = (size_.lookahead + 1 + size_.prefetch) * batch_bytes_;
  choose_slots(
      options_.cache.value_or(std::max(options_.memory - batches, bytes_of(window_rows_))));
  for (int k = 0; k < tables_.count(); ++k) {
    // Where every row has a slot none ever has to leave early: as if there were no limit.
    const bool all_fit = size_.slots[k] == tables_.rows_of(k);
    oracles_.emplace_back(
        OracleOptions{size_.lookahead, size_.prefetch, all_fit ? 0 : size_.slots[k]});
  }
  for (const auto& rows : std::exchange(seen_, {})) give_oracles(rows);
  known_ = {};
  known_after_ = {};
  return {};
}

/// By the bytes of the first window's rows; no more than there are rows. A slot table of which it
/// has none counts as one row, and has one slot at least.
void CachePlanner::choose_slots(int64_t cache) {
  for (int64_t& rows : window_rows_) rows = std::max<int64_t>(rows, 1);
  const int64_t bytes = bytes_of(window_rows_);
  for (int k = 0; k < tables_.count(); ++k) {
    const int64_t slots = scaled(cache, window_rows_[k], bytes);
    const int64_t most = std::min<int64_t>(tables_.rows_of(k), std::numeric_limits<int32_t>::max());
    size_.slots.push_back(std::clamp<int64_t>(slots, 1, most));
  }
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
    if (!window_is_full() || seen_.empty()) return Plan();
    RECMILL_RETURN_IF_ERROR(choose());
  }
  if (ended_ && !std::exchange(told_end_, true))
    for (Oracle& oracle : oracles_) oracle.end();
  if (oracles_.empty() || !oracles_[0].ready()) return Plan();
  std::vector<LookaheadStep> decisions;
  for (int k = 0; k < tables_.count(); ++k) {
    auto decision = oracles_[k].decide();
    if (!decision.ok()) return too_few(decision.status(), k);
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

/// Names the bytes with which the slot table would have had as many slots as it needed.
Status CachePlanner::too_few(const Status& of_oracle, int slot_table) const {
  const int64_t needed = oracles_[slot_table].slots_asked();
  const int64_t window = window_rows_[slot_table];
  const int64_t bytes = scaled(needed, bytes_of(window_rows_), window, window - 1);
  return Status::BadRequest(
      fmt::format("lookahead.cache: {}; needs at least {} bytes", of_oracle.message(), bytes));
}

}  // namespace recmill::lookahead
