// SPDX-License-Identifier: Apache-2.0
#include "lookahead/cache_sizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace recmill::lookahead {
namespace {

/// (a * b + more) / c, rounded down.
int64_t scaled(int64_t a, int64_t b, int64_t c, int64_t more = 0) {
  const auto quotient = (static_cast<__int128>(a) * b + more) / c;
  return static_cast<int64_t>(std::min<__int128>(quotient, std::numeric_limits<int64_t>::max()));
}

}  // namespace

CacheSizer::CacheSizer(const SlotTables& tables, std::vector<int64_t> slot_bytes,
                       const CacheOptions& options)
    : tables_(tables), slot_bytes_(std::move(slot_bytes)), options_(options) {
  RECMILL_CHECK(std::ssize(slot_bytes_) == tables.count());
}

void CacheSizer::see(int64_t distinct, RowCounts rows, RowCounts copied, int64_t batch_bytes) {
  if (steps_.empty()) batch_bytes_ = batch_bytes;
  steps_.push_back({distinct, std::move(rows), std::move(copied)});
}

int64_t CacheSizer::bytes_of(const RowCounts& rows) const {
  int64_t bytes = 0;
  for (size_t k = 0; k < rows.size(); ++k) bytes += at_a_rank(rows[k]) * slot_bytes_[k];
  return bytes;
}

/// Slots that a rank needs for its part of them: a half more than if rows were spread evenly, or
/// for all. Of `partitioned` each decider has a share everywhere, and uses that of its own rank.
int64_t CacheSizer::at_a_rank(int64_t rows) const {
  if (options_.ranks == 1 || options_.design != CacheDesign::forward) return rows;
  return std::min(rows, (rows + rows / 2 + options_.ranks - 1) / options_.ranks);
}

/// Batches of so many steps, those that are fetched ahead beside them, and slots for their rows.
int64_t CacheSizer::window_bytes(int64_t steps) const {
  const int64_t ahead = std::min(options_.prefetch, steps - 1);
  const int64_t slots =
      options_.slots_apart ? 0 : bytes_of(steps_[static_cast<size_t>(steps - 1)].rows);
  return (steps + ahead) * batch_bytes_ + std::min(slots, options_.cache.value_or(slots));
}

bool CacheSizer::is_full(bool ended) const {
  const int64_t seen = std::ssize(steps_);
  if (ended) return true;
  if (seen == 0) return false;
  const int64_t lookahead = options_.lookahead.value_or(kDefaultMostLookahead);
  const int64_t enough = 1 + std::max(lookahead, std::min(options_.prefetch, lookahead) + 1);
  return seen >= enough || (!options_.lookahead && window_bytes(seen) > options_.memory);
}

Result<CacheSize> CacheSizer::choose() const {
  int64_t steps = std::ssize(steps_);
  if (!options_.lookahead) {
    while (steps > 1 && window_bytes(steps) > options_.memory) --steps;
    if (window_bytes(steps) > options_.memory)
      return Status::BadRequest(fmt::format(
          "lookahead.cache: one batch and the rows that it looks up need {} bytes, and {} are free",
          window_bytes(steps), options_.memory));
  }
  // Of a stream that ended before its window was full, the window would have gone on.
  const bool cut = steps < std::ssize(steps_);
  const int64_t most = options_.lookahead.value_or(kDefaultMostLookahead);
  CacheSize size;
  size.lookahead = cut ? std::min(steps - 1, most) : most;
  size.prefetch = std::min(options_.prefetch, size.lookahead);
  size.batches = std::min<int64_t>(size.lookahead + 1, std::ssize(steps_));
  for (int64_t x = 0; x < size.batches; ++x) size.distinct += steps_[x].distinct;
  const RowCounts& window = steps_[static_cast<size_t>(size.batches - 1)].rows;
  size.rows = std::accumulate(window.begin(), window.end(), int64_t{0});
  const int64_t batches = (size.lookahead + 1 + size.prefetch) * batch_bytes_;
  choose_slots(options_.cache.value_or(std::max(options_.memory - batches, bytes_of(window))),
               size);
  return size;
}

/// A slot table of which the window has no rows counts as one row.
RowCounts CacheSizer::rows_of_window(const CacheSize& size) const {
  RowCounts window = steps_[static_cast<size_t>(size.batches - 1)].rows;
  for (int64_t& rows : window) rows = std::max<int64_t>(rows, 1);
  return window;
}

/// By the bytes of the first window's rows; no more than there are rows, and one at least, or one
/// of each share.
int64_t CacheSizer::slots_of(int slot_table, int64_t cache, const RowCounts& window) const {
  const int64_t slots = scaled(cache, at_a_rank(window[slot_table]), bytes_of(window));
  const int64_t limit = std::numeric_limits<int32_t>::max() / (options_.ranks + 1);
  if (options_.ranks == 1)
    return std::clamp<int64_t>(
        slots, 1,
        std::min<int64_t>(tables_.rows_of(slot_table), std::numeric_limits<int32_t>::max()));
  const int64_t least = options_.design == CacheDesign::lrpp ? 2 : 1;
  const int64_t most =
      std::min<int64_t>(tables_.rows_of(slot_table) + least, limit / options_.ranks);
  return options_.ranks * std::clamp<int64_t>(slots / options_.ranks, least, most);
}

void CacheSizer::choose_slots(int64_t cache, CacheSize& size) const {
  const RowCounts window = rows_of_window(size);
  RowCounts copied = steps_[static_cast<size_t>(size.batches - 1)].copied;
  copied.resize(window.size());
  for (int k = 0; k < tables_.count(); ++k) {
    const int64_t slots = slots_of(k, cache, window), share = slots / options_.ranks;
    int64_t of_copies = 0;
    if (options_.ranks > 1 && options_.design == CacheDesign::replicated) of_copies = share;
    if (options_.ranks > 1 && options_.design == CacheDesign::lrpp)
      of_copies = copied_share(copied[k], window[k] - copied[k], options_.ranks, share);
    size.slots.push_back(slots - of_copies * options_.ranks);
    size.copied_slots.push_back(of_copies * options_.ranks);
  }
}

int64_t copied_share(int64_t copied, int64_t alone, int ranks, int64_t share) {
  const int64_t of_rank = (std::max<int64_t>(alone, 0) + ranks - 1) / ranks;
  const int64_t slots = copied + of_rank == 0 ? share / 2 : scaled(share, copied, copied + of_rank);
  return std::clamp<int64_t>(slots, 1, std::max<int64_t>(1, share - 1));
}

Status CacheSizer::too_few(const Status& of_oracle, int64_t needed, int slot_table) const {
  const CacheSize size = *choose();
  const RowCounts window = rows_of_window(size);
  const int64_t rows = at_a_rank(window[slot_table]);
  const int64_t bytes = scaled(needed, bytes_of(window), rows, rows - 1);
  return Status::BadRequest(
      fmt::format("lookahead.cache: {}; needs at least {} bytes", of_oracle.message(), bytes));
}

}  // namespace recmill::lookahead
