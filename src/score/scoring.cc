// SPDX-License-Identifier: Apache-2.0
#include "score/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/paths.h"
#include "checkpoint/folder.h"
#include "preprocess/run/column_statistics.h"
#include "reader/data_files.h"
#include "run/checkpoint/restore_checkpoint.h"
#include "run/fit_columns.h"
#include "run/folder/run_log.h"
#include "run/handshake.h"
#include "run/hotset/choose_hot_rows.h"
#include "run/memory.h"
#include "run/no_better_than_guessing.h"
#include "run/placement/run_placement.h"
#include "score/predictions.h"
#include "step/scores.h"

namespace recmill::train {
namespace {

struct Scoring {
  const ResolvedRun& run;
  const RunOptions& as_trained;
  const ScoringRequest& request;
  const JobSetting& setting;
  ThreadPool& pool;
  // Of rank 0:
  Json metrics = nullptr, read = nullptr, latency = nullptr;
  Scores all = {};  // in the order of the rows
  ScoredSources sources = {};
  reader::KeySource of_keys = {};
};

Result<checkpoint::Chosen> open_checkpoint(const RunOptions& options, const ScoringRequest& request,
                                           Files& files) {
  using checkpoint::Which;
  const std::string& wanted = request.checkpoint;
  const Which which = wanted == "best"     ? Which::best
                      : wanted == "newest" ? Which::newest
                                           : Which::best_or_newest;
  if (!wanted.empty() && which == Which::best_or_newest) {
    RECMILL_ASSIGN_OR_RETURN(auto reader, checkpoint::Reader::open(files, wanted));
    return checkpoint::Chosen{std::move(reader), "", {}};
  }
  const std::string folder = options.train.runs + "/" + options.name + "/checkpoints";
  RECMILL_ASSIGN_OR_RETURN(auto chosen, checkpoint::open_wanted(files, folder, which));
  for (const std::string& damaged : chosen.damaged) log_warning(damaged);
  return chosen;
}

// The evaluation after training was over, which has no epochs: requests are not prepared.
std::unique_ptr<DataStage> evaluation_stage(const Scoring& scoring, Rank& rank,
                                            const Communicator& communicator,
                                            const StreamPosition& after) {
  BatchSchedule schedule = scoring.run.schedule(communicator.rank());
  schedule.serves = scoring.request.latency.has_value();
  return make_data_stage(scoring.run, rank, schedule,
                         {std::max<int64_t>(after.iteration, 1), 0, 0});
}

Status add_scores(Scoring& scoring, Communicator& communicator, const RankBatch& batch,
                  const StepResult& step, Scores& scores) {
  RECMILL_RETURN_IF_ERROR(gather_scores(communicator, batch, step, scores));
  calibrate(scores, scoring.run.options.train.negative_keep);
  if (communicator.rank() == 0) append(scores, scoring.all);
  return gather_sources(communicator, batch, scoring.run.options.data.scored.numbers,
                        scoring.sources);
}

Status score_stream(Scoring& scoring, Rank& rank, Communicator& communicator,
                    const StreamPosition& after) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, rank.eval_rows->rows());
  const auto stage = evaluation_stage(scoring, rank, communicator, after);
  const bool first = communicator.rank() == 0;
  Progress progress(first ? scoring.setting.progress : Progress::Style::silent, "scoring",
                    "samples", rows);
  Scores scores;
  while (true) {
    RECMILL_ASSIGN_OR_RETURN(auto batch, stage->next());
    if (batch == nullptr) return {};
    RECMILL_ASSIGN_OR_RETURN(const StepResult step, score(rank, *batch));
    RECMILL_RETURN_IF_ERROR(add_scores(scoring, communicator, *batch, step, scores));
    stage->recycle(std::move(batch));
    progress.show(static_cast<int64_t>(scoring.all.labels.size()), "");
  }
}

/// All of the evaluation rows, read and preprocessed before the first request is answered.
Result<std::vector<std::unique_ptr<RankBatch>>> read_requests(Scoring& scoring, Rank& rank,
                                                              Communicator& communicator,
                                                              const StreamPosition& after) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, rank.eval_rows->rows());
  RECMILL_RETURN_IF_ERROR(check_memory(scoring.run, requests_ledger(scoring.run, rows),
                                       scoring.setting.world, "data.eval"));
  const Stopwatch watch;
  const auto stage = evaluation_stage(scoring, rank, communicator, after);
  std::vector<std::unique_ptr<RankBatch>> requests;
  while (true) {
    RECMILL_ASSIGN_OR_RETURN(auto batch, stage->next());
    if (batch == nullptr) break;
    requests.push_back(std::move(batch));
  }
  if (communicator.rank() == 0) {
    const double seconds = watch.seconds();
    scoring.read = {{"seconds", seconds},
                    {"samples_per_second", static_cast<double>(rows) / seconds}};
  }
  return requests;
}

Status answer_stream(Scoring& scoring, Rank& rank, Communicator& communicator,
                     const StreamPosition& after) {
  const RequestOptions& options = *scoring.request.latency;
  RECMILL_RETURN_IF_ERROR(
      same_everywhere("way of answering",
                      fmt::format("--warmup {} --rate {} --concurrency {}", options.warmup,
                                  options.rate, options.concurrency),
                      communicator));
  RECMILL_ASSIGN_OR_RETURN(const auto requests, read_requests(scoring, rank, communicator, after));
  if (rank.unseen_means != nullptr && !requests.empty())
    RECMILL_RETURN_IF_ERROR(rank.unseen_means->before(*requests.front()));
  RECMILL_ASSIGN_OR_RETURN(RequestResults answers,
                           predict_requests(requests, options, rank, communicator));
  Scores scores;
  for (size_t i = 0; i < requests.size(); ++i) {
    const StepResult step{.logits = answers.logits[i]};
    RECMILL_RETURN_IF_ERROR(add_scores(scoring, communicator, *requests[i], step, scores));
    const auto is_finite = [](double value) { return std::isfinite(value); };
    if (std::ranges::all_of(scores.logits, is_finite)) continue;
    // On every rank alike: the same once more, to say why.
    RECMILL_RETURN_IF_ERROR(prepare(*rank.store, *requests[i]));
    RECMILL_RETURN_IF_ERROR(rank.trainer->score(*requests[i]).status());
  }
  if (communicator.rank() != 0) return {};
  scoring.latency = std::move(answers.report);
  scoring.latency["request_samples"] = scoring.run.options.train.eval_batch_size;
  scoring.latency["ranks"] = scoring.run.ranks;
  scoring.latency["data"] = std::move(scoring.read);
  return {};
}

// Of the rows that have a label; none: there is no such row.
std::optional<metrics::Metrics> measure_labelled(const Scoring& scoring) {
  const int64_t unlabelled = scoring.sources.count_unlabelled();
  if (unlabelled == 0) return metrics::measure(scoring.all.view());
  const Scores labelled = with_labels(scoring.all, scoring.sources.unlabelled);
  if (labelled.labels.empty()) {
    log_info("no row has a label: metrics are left out");
    return std::nullopt;
  }
  log_info(fmt::format("{} of {} rows have no label: metrics are of the others", unlabelled,
                       scoring.all.labels.size()));
  return metrics::measure(labelled.view());
}

// Without the training window where the checkpoint has none that is whole.
void say_if_no_better(const Scoring& scoring, checkpoint::Reader& reader, const LoopState& state,
                      const metrics::Metrics& metrics) {
  const auto line = [&](const metrics::WindowContents& window) {
    return no_better_than_guessing(metrics, scoring.as_trained, state.position.iteration, window);
  };
  if (line({}).empty()) return;
  const auto window = read_window(reader);
  log_warning(line(window.ok() ? *window : metrics::WindowContents()));
}

Status score_rows(Scoring& scoring, Communicator& communicator) {
  RECMILL_RETURN_IF_ERROR(
      shake_hands(scoring.run, scoring.setting.identity, communicator, scoring.setting.files));
  RECMILL_RETURN_IF_ERROR(
      same_everywhere("--key of predictions", scoring.request.key, communicator));
  RECMILL_ASSIGN_OR_RETURN(const auto chosen, open_checkpoint(scoring.run.options, scoring.request,
                                                              scoring.setting.files));
  RECMILL_RETURN_IF_ERROR(same_everywhere("checkpoint", chosen.reader->path(), communicator));
  if (communicator.rank() == 0)
    RECMILL_RETURN_IF_ERROR(check_untold_origin(
        scoring.run, *chosen.reader, scoring.setting.read_options, scoring.setting.files));
  RECMILL_ASSIGN_OR_RETURN(Rank rank, make_rank(scoring.run, Way::engine, communicator,
                                                scoring.pool, scoring.setting.files));
  if (rank.eval_rows == nullptr) {
    return Status::BadRequest("data.eval: names no rows to score");
  }
  RECMILL_ASSIGN_OR_RETURN(
      const LoopState state,
      restore_checkpoint(scoring.run, rank, *chosen.reader, /*for_training=*/false));
  const auto score = scoring.request.latency ? answer_stream : score_stream;
  RECMILL_RETURN_IF_ERROR(score(scoring, rank, communicator, state.position));
  if (communicator.rank() != 0) return {};
  const auto measured = measure_labelled(scoring);
  if (measured) say_if_no_better(scoring, *chosen.reader, state, *measured);
  scoring.metrics = measured ? to_json(*measured) : Json{{"scored", 0}};
  if (const int64_t unlabelled = scoring.sources.count_unlabelled(); unlabelled > 0)
    scoring.metrics["unlabelled"] = unlabelled;
  scoring.metrics["checkpoint"] = chosen.reader->path();
  if (!chosen.which.empty()) scoring.metrics["which"] = chosen.which;
  scoring.of_keys = rank.eval_rows->key_source();
  if (!scoring.latency.is_null()) scoring.metrics["latency"] = std::move(scoring.latency);
  return {};
}

/// Whether rows of a format have columns that tell them apart, and the file has room for this one.
Status check_key(const std::string& key, DataFormat format) {
  if (key.empty()) return {};
  if (format == DataFormat::synthetic || format == DataFormat::behavior_log)
    return Status::BadRequest("--key: rows of data.format = \"" + std::string(name_of(format)) +
                              "\" are told apart by their number alone");
  if (key != "probability" && key != "label") return {};
  return Status::BadRequest("--key: " + key + " is a column of the predictions already");
}

/// Nothing is trained: tables are frozen and keep no state, plans are for lookups of evaluation
/// batches, and nobody has to count the training rows. Ranks as train.ranks says where this world
/// has so many, else as many as it gives: a run may have been trained by others.
Result<ResolvedRun> resolve_scoring(const RunOptions& options, const ScoringRequest& request,
                                    const JobSetting& setting) {
  RunOptions of_rows = options;
  if (!setting.world.ranks(options.train.ranks).ok()) of_rows.train.ranks = 0;
  if (!request.rows.empty()) {
    auto data = reader::data_of_rows(options.data, request.rows, setting.files);
    if (!data.ok()) return data.status().at("--rows");
    of_rows.data = *std::move(data);
  }
  if (!request.predictions.empty()) {
    RECMILL_RETURN_IF_ERROR(check_key(request.key, options.data.format));
    of_rows.data.scored = {.labels = false, .numbers = true, .key = request.key};
  }
  // Nobody fetches ahead of what is only looked up: rows are where they are stored.
  if (of_rows.embedding.store == StoreKind::cached) of_rows.embedding.store = StoreKind::local;
  of_rows.lookahead = {};
  // The order of batches is training's; dictionaries are a checkpoint's.
  const HotsetOptions mixed;
  of_rows.hotset.order = mixed.order;
  of_rows.hotset.folder = mixed.folder;
  of_rows.hotset.first = mixed.first;
  of_rows.hotset.rate = mixed.rate;
  of_rows.hotset.replay = mixed.replay;
  // Which rows are hot in training nobody counts for that; a file may say it.
  if (of_rows.gpu.rows == GpuRowsIn::hot && of_rows.hotset.plan.empty())
    of_rows.gpu.rows = GpuRowsIn::fit;
  RECMILL_ASSIGN_OR_RETURN(ResolvedRun run, resolve_run(of_rows, setting.world, setting.files));
  if (request.latency)
    RECMILL_RETURN_IF_ERROR(check_concurrency(*request.latency, run.ranks, run.options.device));
  for (TableSpec& table : run.spec.tables) table.frozen = true;
  run.options.optimizer = {};
  run.options.train.decay = {};
  run.options.train.batch_size = run.options.train.eval_batch_size;
  run.options.train.epochs = 0;
  run.options.placement.inference = true;
  // Plans go by the rows that were trained on, whatever is scored.
  DataOptions scored = run.options.data;
  if (!request.rows.empty()) run.options.data = options.data;
  run.options.data.scored = {};
  RECMILL_RETURN_IF_ERROR(
      choose_hot_rows(run, setting.identity, setting.world, setting.files, setting.progress));
  RECMILL_RETURN_IF_ERROR(place_tables(run, setting.files));
  run.options.data = std::move(scored);
  return run;
}

}  // namespace

Result<Json> run_scoring(const RunOptions& options, const ScoringRequest& request,
                         const JobSetting& setting) {
  RECMILL_ASSIGN_OR_RETURN(ResolvedRun run, resolve_scoring(options, request, setting));
  if (lacks_statistics(run.graph)) {
    RECMILL_ASSIGN_OR_RETURN(const auto chosen,
                             open_checkpoint(run.options, request, setting.files));
    take_fitted(*chosen.reader, run);
    RECMILL_RETURN_IF_ERROR(check_origin(run, *chosen.reader, /*for_training=*/false));
  }
  RECMILL_RETURN_IF_ERROR(check_memory(run, scoring_ledger(run), setting.world));
  const auto pool = make_pool(run.threads);
  Scoring scoring{run, options, request, setting, *pool};
  RECMILL_RETURN_IF_ERROR(setting.world.run(
      run.ranks, [&](Communicator& communicator) { return score_rows(scoring, communicator); }));
  if (setting.world.has_first_rank() && !request.predictions.empty()) {
    forget_labels(scoring.sources, scoring.all.labels);
    const std::vector<double> probabilities = probabilities_of(scoring.all);
    const reader::NamedColumn probability{"probability", std::span<const double>(probabilities)};
    RECMILL_RETURN_IF_ERROR(write_predictions(setting.files, request.predictions, request.key,
                                              scoring.of_keys, scoring.sources, probability,
                                              scoring.all.labels));
  }
  return scoring.metrics;
}

}  // namespace recmill::train
