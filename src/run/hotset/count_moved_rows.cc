// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/count_moved_rows.h"

#include <algorithm>
#include <vector>

#include "comm/slice_tree.h"
#include "lookahead/batch_rows.h"
#include "lookahead_plan/slot_tables.h"
#include "run/rank.h"
#include "run/training_ids.h"
#include "step/data/reader_source.h"

namespace recmill::train {

Result<MovedByEpoch> count_moved_rows(const ResolvedRun& run, const HotSet& set,
                                      BatchSource& source, ThreadPool& pool, Progress& progress) {
  const SlotTables tables(run.spec);
  const HotRows hot(set);
  lookahead::BatchRows finder(run.spec);
  MovedByEpoch moved;
  RankBatch batch;
  std::vector<int64_t> rows;
  for (int64_t samples = 0;; progress.show(samples, "")) {
    RECMILL_ASSIGN_OR_RETURN(const bool any, source.next(batch));
    if (!any) return moved;
    const int64_t before = moved.hot_near;
    for (int rank = 0; rank < run.ranks; ++rank) {
      const SliceRange own = slices_of_rank(rank, run.ranks, run.slices);
      finder.find(batch.sparse, batch.cut.begin(own.begin), batch.cut.begin(own.end), pool, rows);
      size_t table = 0;
      for (const int64_t row : rows) {  // ascending
        while (row >= tables.begin(static_cast<int>(table)) + run.spec.tables[table].rows) ++table;
        const int64_t ways = run.spec.tables[table].frozen ? 1 : 2;
        moved.all_far += ways;
        if (!hot.is_hot(table, row - tables.begin(static_cast<int>(table)))) moved.hot_near += ways;
      }
    }
    ++moved.iterations;
    moved.without_far += moved.hot_near == before ? 1 : 0;
    samples += batch.cut.samples;
  }
}

Result<MovedByEpoch> count_moved_rows(const ResolvedRun& run, const HotSet& set, Files& files,
                                      Progress::Style style) {
  const auto pool = make_pool(run.threads);
  RECMILL_ASSIGN_OR_RETURN(TrainingIds data, open_training_ids(run, *pool, files));
  BatchSchedule schedule = run.schedule(0);
  schedule.ranks = 1;  // which sees all samples
  schedule.epochs = 1;
  schedule.iterations = 0;
  schedule.evaluates = false;
  ReaderSource source(schedule, *data.reader, nullptr, *data.preprocessor, StreamPosition{});
  Progress progress(style, "counting rows that move", "samples", data.rows);
  return count_moved_rows(run, set, source, *pool, progress);
}

}  // namespace recmill::train
