// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/count_moved_rows.h"

#include <memory>
#include <optional>
#include <vector>

#include "comm/slice_tree.h"
#include "lookahead/batch_rows.h"
#include "lookahead_plan/slot_tables.h"
#include "preprocess/run/column_statistics.h"
#include "run/hotset/hot_folder.h"
#include "run/rank.h"
#include "run/training_ids.h"
#include "step/data/hot_cold_source.h"
#include "step/data/reader_source.h"

namespace recmill::train {
namespace {

/// Of one rank, which sees all samples.
BatchSchedule one_epoch(const ResolvedRun& run) {
  BatchSchedule schedule = run.schedule(0);
  schedule.ranks = 1;
  schedule.epochs = 1;
  schedule.iterations = 0;
  schedule.evaluates = false;
  return schedule;
}

}  // namespace

Result<MovedByEpoch> count_moved_rows(const ResolvedRun& run, const HotSet& set,
                                      BatchSource& source, ThreadPool& pool, Progress& progress) {
  const SlotTables tables(run.spec);
  const HotRows hot(set);
  lookahead::BatchRows finder(run.spec);
  MovedByEpoch moved;
  RankBatch batch;
  std::vector<int64_t> rows;
  std::optional<hotset::BatchKind> kind;  // of the batch before
  for (int64_t samples = 0;; progress.show(samples, "")) {
    RECMILL_ASSIGN_OR_RETURN(const bool any, source.next(batch));
    if (!any) return moved;
    const int64_t before = moved.hot_near, all_before = moved.all_far;
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
    if (batch.kind == hotset::BatchKind::cold) moved.of_fae += moved.all_far - all_before;
    if (batch.kind && kind && *batch.kind != *kind)
      moved.of_fae += set.hot() * (*kind == hotset::BatchKind::cold ? run.ranks : 1);
    kind = batch.kind;
    samples += batch.cut.samples;
  }
}

Result<MovedByEpoch> count_moved_rows_apart(const ResolvedRun& run,
                                            const hotset::RatePolicy& policy, Files& files,
                                            Progress::Style style) {
  const auto pool = make_pool(run.threads);
  RECMILL_ASSIGN_OR_RETURN(const auto rows, open_hot_cold_rows(run, *pool, files));
  RECMILL_ASSIGN_OR_RETURN(
      const auto preprocessor,
      preprocess::make_preprocessor(preprocess::without_dense(run.graph), run.spec, *pool));
  RECMILL_RETURN_IF_ERROR(fill_dictionaries(*run.hot_folder, *preprocessor));
  HotColdRules rules = run.hot_folder->rules;
  rules.policy = policy;
  HotColdSource source(one_epoch(run), *rows, nullptr, *preprocessor, rules, StreamPosition{},
                       policy.first(), std::make_shared<ScheduleLosses>());
  RECMILL_ASSIGN_OR_RETURN(const int64_t samples, rows->rows());
  Progress progress(style, "counting rows that move", "samples", samples);
  return count_moved_rows(run, run.hot_folder->set, source, *pool, progress);
}

Result<MovedByEpoch> count_moved_rows(const ResolvedRun& run, const HotSet& set, Files& files,
                                      Progress::Style style) {
  const auto pool = make_pool(run.threads);
  RECMILL_ASSIGN_OR_RETURN(TrainingIds data, open_training_ids(run, *pool, files));
  if (run.hot_folder != nullptr)
    RECMILL_RETURN_IF_ERROR(fill_dictionaries(*run.hot_folder, *data.preprocessor));
  ReaderSource source(one_epoch(run), *data.reader, nullptr, *data.preprocessor, StreamPosition{});
  Progress progress(style, "counting rows that move", "samples", data.rows);
  return count_moved_rows(run, set, source, *pool, progress);
}

}  // namespace recmill::train
