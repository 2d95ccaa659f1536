// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/files.h"
#include "base/status.h"
#include "hotset/hot_cold_order.h"
#include "hotset_plan/hot_set.h"
#include "run/folder/progress.h"
#include "run/resolved_run.h"
#include "step/data/batch_source.h"

namespace recmill::train {

/// Rows that the ranks of a run fetch in an epoch, each distinct one of a rank's part of a batch
/// once, and write back; those of frozen tables are not written. Evaluations are left out.
struct MovedByEpoch {
  int64_t iterations = 0;
  int64_t without_far = 0;  // iterations that look no far row up
  int64_t all_far = 0;      // where every row is far
  int64_t hot_near = 0;     // where hot rows are near
  /// As FAE has it: cold batches fetch hot rows too, hot ones none, and where one kind follows the
  /// other copies are made current: by each rank before hot batches, by one of them after. Of
  /// batches that are hot or cold alone.
  int64_t of_fae = 0;
};

/// Of all batches of `source`, of which each is whole.
Result<MovedByEpoch> count_moved_rows(const ResolvedRun& run, const HotSet& set,
                                      BatchSource& source, ThreadPool& pool, Progress& progress);
/// Of the first epoch of hot and cold batches, by these rates, of a run whose folder was opened.
Result<MovedByEpoch> count_moved_rows_apart(const ResolvedRun& run,
                                            const hotset::RatePolicy& policy, Files& files,
                                            Progress::Style style);
/// Of an epoch in the run's own order, mixed.
Result<MovedByEpoch> count_moved_rows(const ResolvedRun& run, const HotSet& set, Files& files,
                                      Progress::Style style);

}  // namespace recmill::train
