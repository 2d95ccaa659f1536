// SPDX-License-Identifier: Apache-2.0
#include "train/scoring.h"

#include <algorithm>

#include "base/log.h"
#include "checkpoint/folder.h"
#include "reader/columnar_writer.h"
#include "train/handshake.h"
#include "train/memory.h"
#include "train/restore_checkpoint.h"
#include "train/run_log.h"
#include "train/run_placement.h"
#include "train/scores.h"

namespace recmill::train {
namespace {

struct Scoring {
  const ResolvedRun& run;
  const ScoringRequest& request;
  const JobSetting& setting;
  Pool& pool;
  Json metrics;
  Scores all;  // in the order of the rows
};

Result<std::unique_ptr<checkpoint::Reader>> open_checkpoint(const Scoring& scoring) {
  Files& files = scoring.setting.files;
  if (!scoring.request.checkpoint.empty()) {
    return checkpoint::Reader::open(files, scoring.request.checkpoint);
  }
  const RunOptions& options = scoring.run.options;
  const std::string folder = options.train.runs + "/" + options.name + "/checkpoints";
  RECMILL_ASSIGN_OR_RETURN(auto newest, checkpoint::open_newest(files, folder));
  for (const std::string& damaged : newest.damaged) log_warning(damaged);
  if (newest.reader == nullptr) return Status::BadRequest(folder + ": holds no whole checkpoint");
  return std::move(newest.reader);
}

Status score_stream(Scoring& scoring, Rank& rank, Communicator& communicator,
                    const StreamPosition& after) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, rank.eval_rows->rows());
  BatchSchedule schedule = scoring.run.schedule(communicator.rank());
  schedule.epochs = 0;  // training is over: the stream is one evaluation
  DataStage stage(schedule, *rank.train_rows, rank.eval_rows.get(), *rank.preprocessor, *rank.store,
                  {std::max<int64_t>(after.iteration, 1), 0, 0},
                  static_cast<size_t>(scoring.run.options.train.queue));
  const bool first = communicator.rank() == 0;
  Progress progress(first ? scoring.setting.progress : Progress::Style::silent, "scoring",
                    "samples", rows);
  Scores scores;
  while (true) {
    RECMILL_ASSIGN_OR_RETURN(auto batch, stage.next());
    if (batch == nullptr) return {};
    RECMILL_ASSIGN_OR_RETURN(const StepResult step, rank.trainer->score(*batch));
    RECMILL_RETURN_IF_ERROR(gather_scores(communicator, *batch, step, scores));
    calibrate(scores, scoring.run.options.train.negative_keep);
    stage.recycle(std::move(batch));
    if (!first) continue;
    append(scores, scoring.all);
    progress.show(static_cast<int64_t>(scoring.all.labels.size()), "");
  }
}

Status score_rows(Scoring& scoring, Communicator& communicator) {
  RECMILL_RETURN_IF_ERROR(
      shake_hands(scoring.run, scoring.setting.identity, communicator, scoring.setting.files));
  RECMILL_ASSIGN_OR_RETURN(const auto reader, open_checkpoint(scoring));
  RECMILL_ASSIGN_OR_RETURN(Rank rank, make_rank(scoring.run, Way::engine, communicator,
                                                scoring.pool, scoring.setting.files));
  if (rank.eval_rows == nullptr) {
    return Status::BadRequest("data.eval: names no rows to score");
  }
  RECMILL_ASSIGN_OR_RETURN(const LoopState state,
                           restore_checkpoint(scoring.run, rank, *reader, /*for_training=*/false));
  RECMILL_RETURN_IF_ERROR(score_stream(scoring, rank, communicator, state.position));
  if (communicator.rank() != 0) return {};
  scoring.metrics = to_json(metrics::measure(scoring.all.view()));
  scoring.metrics["checkpoint"] = reader->path();
  return {};
}

}  // namespace

Result<Json> run_scoring(const RunOptions& options, const ScoringRequest& request,
                         const JobSetting& setting) {
  RunOptions any_ranks = options;
  any_ranks.train.ranks = 0;
  any_ranks.placement.plan.clear();  // a plan for the ranks that trained
  RECMILL_ASSIGN_OR_RETURN(ResolvedRun run, resolve_run(any_ranks, setting.world, setting.files));
  run.options.train.decay = {};  // nothing is trained: nobody has to count the training rows
  RECMILL_RETURN_IF_ERROR(place_tables(run, setting.files));
  RECMILL_RETURN_IF_ERROR(check_memory(memory_ledger(run), setting.world));
  const auto pool = make_pool(run.threads);
  Scoring scoring{run, request, setting, *pool, {}, {}};
  RECMILL_RETURN_IF_ERROR(setting.world.run(
      run.ranks, [&](Communicator& communicator) { return score_rows(scoring, communicator); }));
  if (setting.world.has_first_rank() && !request.predictions.empty()) {
    RECMILL_RETURN_IF_ERROR(
        reader::write_columns_parquet(setting.files, request.predictions, {"probability", "label"},
                                      {std::span<const float>(scoring.all.probabilities),
                                       std::span<const float>(scoring.all.labels)}));
  }
  return scoring.metrics;
}

}  // namespace recmill::train
