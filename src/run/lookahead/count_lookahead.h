// SPDX-License-Identifier: Apache-2.0
// What a cache that knows the next batches would move in an epoch of a run's training, counted
// without training (BagPipe, section 3).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "lookahead/moved_rows.h"
#include "lookahead/oracle.h"
#include "run/folder/progress.h"
#include "run/resolved_run.h"

namespace recmill::train {

struct LookaheadRequest {
  std::vector<lookahead::OracleOptions> cases;
  /// Of the first case; null: nobody asks.
  std::function<void(const LookaheadStep&)> on_step = nullptr;
  Progress::Style progress = Progress::Style::silent;
};

/// Sums over the batches of an epoch.
struct LookaheadCount {
  lookahead::OracleOptions of;
  int64_t ranks = 1;
  int64_t batches = 0;
  int64_t distinct = 0;  // rows of each batch
  int64_t fetched = 0;
  int64_t evicted = 0;
  int64_t critical = 0;        // rows that the next batch uses too
  int64_t one_rank = 0;        // rows of each batch that one rank uses alone
  int64_t slots_needed = 0;    // most rows in slots, where these are enough
  int64_t lru_fetched = 0;     // by a cache of all ranks' slots that keeps the rows used last
  int64_t static_fetched = 0;  // by one that always has the thousandth of all rows that is looked
                               // up most
  MovedRows none;              // without a cache
  // In the order of CacheDesign; none: so many slots are too few for the design.
  std::array<std::optional<MovedRows>, 4> designs;

  /// P as it counts: no more than L.
  int64_t prefetch() const { return std::min(of.prefetch, of.lookahead); }
};

/// Through the run's own reader, down-sampling and preprocessing, by its ranks; slots are those of
/// each rank, and rows are fetched and leave as with `forward`. Fails where slots are too few for
/// the rows of P + 1 batches in a row, and names the least that works.
Result<std::vector<LookaheadCount>> count_lookahead(const ResolvedRun& run,
                                                    const LookaheadRequest& request, Files& files);

Json to_json(const LookaheadCount& count);

}  // namespace recmill::train
