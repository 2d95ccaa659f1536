// SPDX-License-Identifier: Apache-2.0
#include "train/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "base/json/json.h"
#include "base/log.h"
#include "checkpoint/folder.h"
#include "comm/gather_values.h"
#include "preprocess/run/column_statistics.h"
#include "reader/data_files.h"
#include "reader/open_reader.h"
#include "reader/synthetic/planted_figures.h"
#include "run/checkpoint/checkpoint_saver.h"
#include "run/checkpoint/restore_checkpoint.h"
#include "run/checkpoint/saved_state.h"
#include "run/chosen_kernels.h"
#include "run/drift_warning.h"
#include "run/fit_columns.h"
#include "run/gpu/gpu_run.h"
#include "run/handshake.h"
#include "run/hotset/choose_hot_rows.h"
#include "run/hotset/hot_folder.h"
#include "run/lookahead/row_commits.h"
#include "run/lookahead/run_cache.h"
#include "run/memory.h"
#include "run/no_better_than_guessing.h"
#include "run/placement/run_placement.h"
#include "run/placement/run_replanning.h"
#include "step/data/reader_source.h"
#include "train/export_plain_run.h"
#include "train/flattened_values.h"
#include "train/training_loop.h"

namespace recmill::train {
namespace {

const char* text_of(Ending ending) {
  switch (ending) {
    case Ending::finished:
      return "finished";
    case Ending::early_stop:
      return "early stop";
    case Ending::interrupted:
      return "interrupted";
  }
  return "?";
}

// The state that ranks of a process share while they train.
struct Training {
  const ResolvedRun& run;
  const TrainingRequest& request;
  const JobSetting& setting;
  const RunFolder& folder;
  ThreadPool& pool;
  CheckpointPublisher& publisher;
  // Written by rank 0:
  std::unique_ptr<RunLock> lock = nullptr;
  bool has_begun = false;  // the folder is this run's
  Json summary = nullptr;
};

// What the generator of the data said of the best there is, where it made the data.
Status add_planted(const DataOptions& data, Files& files, Json& summary) {
  const std::string path = reader::data_folder(data) + "/planted.json";
  if (data.path.empty() || !files.exists(path)) return {};
  RECMILL_ASSIGN_OR_RETURN(const auto figures, reader::read_planted_figures(files, path));
  summary["planted_auc"] = figures.best_auc;
  return {};
}

// What became of each feature's ids, over all ranks and batches so far, evaluations too; what there
// is nothing to tell of is left out. Collective.
Result<Json> count_ids(const ResolvedRun& run, const Rank& rank, Communicator& communicator) {
  const std::vector<preprocess::FeatureCounts> own = rank.preprocessor->counts();
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(own))));
  const bool whole = reads_whole_batches(run.schedule(communicator.rank()), *rank.preprocessor);
  Json features = Json::object();
  for (size_t f = 0; f < own.size(); ++f) {
    preprocess::IdCounts ids;
    for (int from = 0; from < (whole ? 1 : communicator.ranks()); ++from) {
      preprocess::FeatureCounts counts;
      std::memcpy(&counts, received.from(from).data() + f * sizeof(counts), sizeof(counts));
      ids.add(counts.ids);
    }
    Json feature = Json::object();
    if (ids.clamped > 0) feature["clamped"] = ids.clamped;
    if (ids.dropped > 0) feature["dropped"] = ids.dropped;
    if (ids.unseen > 0) feature["unseen"] = ids.unseen;
    if (!feature.empty()) features[run.spec.features[f].name] = feature;
  }
  return features;
}

// What each rank spent its time and memory on, rank after rank. Collective.
Result<Json> gather_profile(const ResolvedRun& run, Rank& rank, Communicator& communicator) {
  Json own = rank.trainer->stages().clock().report();
  own["name"] = communicator.name(communicator.rank());
  own["peak_bytes"] = peak_resident_bytes();
  own["row_bytes"] = row_bytes(run, communicator.rank());
  if (has_cache(run)) {
    RECMILL_RETURN_IF_ERROR(settle(rank));  // the last rows have left
    own["moved_rows"] = to_json(rank.store->stats().moved);
  }
  if (may_have_far_rows(run.options)) {
    const store::FarCounts far = rank.store->stats().far;
    own["far_lookups"] = far.lookups;
    own["far_rows"] = far.rows;
  }
  const std::string text = own.dump();
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(text))));
  Json all = Json::array();
  for (int r = 0; r < communicator.ranks(); ++r) {
    const auto bytes = received.from(r);
    all.push_back(Json::parse(reinterpret_cast<const char*>(bytes.data()),
                              reinterpret_cast<const char*>(bytes.data()) + bytes.size()));
  }
  return all;
}

/// What all ranks have counted in this part of the run. Collective.
Result<store::FarCounts> gather_far(const Rank& rank, Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(const auto of_ranks,
                           gather_values(rank.store->stats().far, communicator));
  store::FarCounts all;
  for (const store::FarCounts& of_rank : of_ranks) all += of_rank;
  return all;
}

Result<Json> summarize(const Training& training, Rank& rank, const LoopOutcome& outcome,
                       double earlier_seconds) {
  const double seconds = earlier_seconds + outcome.seconds;
  Json summary;
  summary["name"] = training.run.options.name;
  summary["ending"] = text_of(outcome.ending);
  summary["iterations"] = outcome.state.position.iteration;
  summary["samples"] = outcome.samples;
  summary["seconds"] = seconds;
  // A run that was resumed at its end trains nothing: the rate would be that of before.
  summary["samples_per_second"] =
      outcome.seconds > 0 ? Json(static_cast<double>(outcome.samples) / seconds) : Json();
  if (outcome.held_out) summary.update(to_json(*outcome.held_out));
  if (outcome.state.best) {
    const auto metric = training.run.options.train.early_stop.metric;
    summary["best_iteration"] = outcome.state.best->iteration;
    summary[fmt::format("best_{}", name_of(metric))] = outcome.state.best->value;
  }
  const reader::ReaderCounts counts = rank.train_rows->counts();
  summary["bad_rows"] = counts.bad_rows;
  if (training.run.options.data.format == DataFormat::behavior_log) {
    summary["passed_over_events"] = counts.passed_over;
  }
  RECMILL_RETURN_IF_ERROR(add_planted(training.run.options.data, training.setting.files, summary));
  summary["ranks"] = training.run.ranks;
  summary["shards"] = training.run.slices;
  summary["threads"] = training.run.threads;
  summary["seed"] = training.run.options.train.seed;
  summary["commit"] = training.setting.commit;
  return summary;
}

bool is_there(const Training& training, int64_t step) {
  return checkpoint::Reader::open(training.setting.files, training.folder.checkpoints() + "/" +
                                                              checkpoint::folder_name(step))
      .ok();
}

/// What is not kept, or no longer there, is not to be beaten.
LoopState without_lost_best(const Training& training, LoopState state) {
  if (!training.run.options.train.checkpoint.keep_best ||
      (state.best && !is_there(training, state.best->iteration)))
    state.best.reset();
  return state;
}

/// From the last commit, where the rows begin there.
Result<LoopState> committed_state(const Training& training, Rank& rank) {
  RECMILL_ASSIGN_OR_RETURN(const auto packed, PackedState::open(rank.home.record, kCommit));
  RECMILL_ASSIGN_OR_RETURN(
      LoopState state, restore_state(training.run, rank, *packed.reader, /*for_training=*/true));
  rank.home.record = {};
  return without_lost_best(training, std::move(state));
}

Result<LoopState> starting_state(const Training& training, Rank& rank) {
  if (training.request.existing != ExistingRun::resume) return LoopState{};
  if (!rank.home.record.empty()) return committed_state(training, rank);
  Files& files = training.setting.files;
  RECMILL_ASSIGN_OR_RETURN(const auto newest,
                           checkpoint::open_newest(files, training.folder.checkpoints()));
  for (const std::string& damaged : newest.damaged) log_warning(damaged);
  if (newest.reader == nullptr) return LoopState{};
  RECMILL_ASSIGN_OR_RETURN(LoopState state, restore_checkpoint(training.run, rank, *newest.reader,
                                                               /*for_training=*/true));
  return without_lost_best(training, std::move(state));
}

// What the start is, for all ranks to agree on.
std::string start_text(const LoopState& start) {
  return fmt::format("step {}, best {}", start.position.iteration,
                     start.best ? std::to_string(start.best->iteration) : "none");
}

// Before the run's folder is given this configuration in place of the checkpoint's.
Status check_resumed(const Training& training) {
  if (training.request.existing != ExistingRun::resume) return {};
  Files& files = training.setting.files;
  const std::string folder = training.folder.checkpoints();
  RECMILL_ASSIGN_OR_RETURN(const auto newest, checkpoint::open_newest(files, folder));
  if (newest.reader == nullptr) return {};
  RECMILL_RETURN_IF_ERROR(check_origin(training.run, *newest.reader, /*for_training=*/true));
  return check_untold_origin(training.run, *newest.reader, training.setting.read_options, files);
}

// What no rank does before all are known to do the same.
Status begin(Training& training, Communicator& communicator) {
  const auto& request = training.request;
  RECMILL_RETURN_IF_ERROR(
      shake_hands(training.run, training.setting.identity, communicator, training.setting.files));
  if (communicator.rank() != 0) return {};
  RECMILL_RETURN_IF_ERROR(training.folder.check(request.existing));
  RECMILL_ASSIGN_OR_RETURN(training.lock,
                           RunLock::take(training.setting.files, training.folder.path()));
  RECMILL_RETURN_IF_ERROR(check_resumed(training));
  if (request.export_plain.empty()) return {};
  return export_plain_run(training.run, training.setting.files, request.export_plain);
}

const std::string& config_of_folder(const JobSetting& setting) {
  return setting.config.empty() ? setting.identity.config : setting.config;
}

// The run's folder, once every rank is made: until then a run that it replaces is not touched.
Status begin_folder(Training& training, Communicator& communicator) {
  RECMILL_RETURN_IF_ERROR(communicator.barrier());
  if (communicator.rank() == 0) {
    RECMILL_RETURN_IF_ERROR(
        training.folder.create(training.request.existing, config_of_folder(training.setting)));
    training.has_begun = true;
    if (training.request.begun) training.request.begun();
  }
  return communicator.barrier();
}

/// Rows that are told apart, or given, for evaluation are there, before anything is trained. Reads
/// what the first evaluation would.
Status check_evaluation_rows(Rank& rank) {
  if (rank.eval_rows == nullptr) return {};
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, rank.eval_rows->rows());
  return rows > 0 ? Status() : Status::Failed("data.eval: there is no row in it");
}

void say_where_layers_are(const RunOptions& options) {
  if (layers_are_on_gpu(options))
    log_info(
        "train.deterministic = false: the GPU computes the dense layers, whose sums are in another "
        "order than the CPU's");
  if (options.device == DeviceKind::cuda && !layers_are_on_gpu(options))
    log_info(
        "train.deterministic = true: the CPU computes the dense layers, bit for bit as without a "
        "GPU; false has the GPU compute them, which is faster");
}

// What servers may have of an earlier start.
Status find_earlier_rows(ResolvedRun& run, const TrainingRequest& request, const RunFolder& folder,
                         Files& files) {
  if (!has_rows_elsewhere(run) || request.existing != ExistingRun::resume) return {};
  RECMILL_ASSIGN_OR_RETURN(run.home_run, folder.home_run());
  RECMILL_ASSIGN_OR_RETURN(const auto newest, checkpoint::open_newest(files, folder.checkpoints()));
  if (newest.reader != nullptr) run.newest_checkpoint = newest.reader->step();
  return {};
}

// What operations on dense columns need of the training rows: of those that the checkpoint was
// trained on where there is one.
Status fit(ResolvedRun& run, const TrainingRequest& request, const JobSetting& setting,
           const RunFolder& folder) {
  if (!lacks_statistics(run.graph)) return {};
  if (request.existing == ExistingRun::resume) {
    RECMILL_ASSIGN_OR_RETURN(const auto newest,
                             checkpoint::open_newest(setting.files, folder.checkpoints()));
    if (newest.reader != nullptr) {
      take_fitted(*newest.reader, run);
      return check_origin(run, *newest.reader, /*for_training=*/true);
    }
  }
  RECMILL_RETURN_IF_ERROR(folder.check(request.existing));
  return fit_columns(run, Way::engine, setting.identity, setting.world, setting.files,
                     setting.progress);
}

// Behind a run that ended well, so that of one that fails nothing but the failure is told.
void say_flattened(const Training& training, const Json& flattened, Progress& progress) {
  const preprocess::PreprocessOptions& options = training.run.options.preprocess;
  std::string ops;
  for (const std::string& op : options.dense) ops += (ops.empty() ? "" : ", ") + op;
  if (training.request.default_dense_ops && !training.run.schema.dense.empty())
    progress.say(fmt::format(
        "preprocess.dense is not given: dense columns go through its default, {}, which makes a "
        "missing value {:g}, each other ln(1 + x), and those below 0 all the same",
        ops, std::log1p(std::max(options.fill_value, 0.0))));
  for (const std::string& line : flattened_lines(flattened)) progress.say(line);
}

void say_how_it_ended(const RunOptions& options, const LoopOutcome& outcome,
                      const RunFolder& folder, Progress& progress) {
  if (outcome.state.best)
    progress.say(fmt::format(
        "the best checkpoint by {} is {}/{} ({}): eval, predict and export take it",
        name_of(options.train.early_stop.metric), folder.checkpoints(),
        checkpoint::folder_name(outcome.state.best->iteration),
        outcome.best ? brief(*outcome.best) : fmt::format("{:.5g}", outcome.state.best->value)));
  if (!outcome.held_out) return;
  const std::string line = no_better_than_guessing(
      *outcome.held_out, options, outcome.state.position.iteration, outcome.state.window);
  if (!line.empty()) log_warning("at the last evaluation " + line);
}

Status train_rank(Training& training, Communicator& communicator) {
  const ResolvedRun& run = training.run;
  const JobSetting& setting = training.setting;
  RECMILL_RETURN_IF_ERROR(begin(training, communicator));
  RECMILL_ASSIGN_OR_RETURN(Rank rank,
                           make_rank(run, Way::engine, communicator, training.pool, setting.files));
  RECMILL_RETURN_IF_ERROR(check_evaluation_rows(rank));
  RECMILL_RETURN_IF_ERROR(begin_folder(training, communicator));
  if (communicator.rank() == 0 && rank.home.home != nullptr)
    RECMILL_RETURN_IF_ERROR(training.folder.keep_home_run(rank.home.run));
  RECMILL_ASSIGN_OR_RETURN(const LoopState start, starting_state(training, rank));
  RECMILL_RETURN_IF_ERROR(same_everywhere("newest checkpoint", start_text(start), communicator));
  std::optional<RunLog> log;
  if (communicator.rank() == 0) {
    RECMILL_RETURN_IF_ERROR(
        training.publisher.begin(start.best ? std::optional(start.best->iteration) : std::nullopt));
    say_where_layers_are(run.options);
    RECMILL_ASSIGN_OR_RETURN(const int64_t rows, rank.train_rows->rows());
    RECMILL_ASSIGN_OR_RETURN(log, RunLog::open(setting.files, training.folder, setting.progress,
                                               run.samples_in_all(rows), start.position.iteration));
    if (run.hot_folder != nullptr)
      RECMILL_RETURN_IF_ERROR(
          log->open_schedules(setting.files, training.folder.schedule(), start.schedule));
    if (start.position.iteration > 0) {
      log->progress().say(fmt::format("resumes after iteration {}", start.position.iteration));
    }
  }
  CheckpointSaver saver(run, rank, communicator, training.publisher);
  RECMILL_ASSIGN_OR_RETURN(const auto replanner,
                           make_replanner(run, rank, communicator, training.pool, setting.files,
                                          log ? &*log : nullptr, start.position.iteration));
  DriftWarning drift(run, *rank.store, setting.files, /*watches=*/communicator.rank() == 0);
  const auto commits = RowCommits::make(run, rank, communicator);
  std::unique_ptr<TrainedOrder> order;
  if (run.notes_inputs) {
    RECMILL_ASSIGN_OR_RETURN(order, TrainedOrder::open(run, training.request.order, communicator,
                                                       training.pool, setting.files));
  }
  LoopSetting loop_setting{.log = log ? &*log : nullptr,
                           .interrupted = setting.interrupted,
                           .saver = saver,
                           .hooks = {&drift},
                           .commits = commits.get(),
                           .order = order.get()};
  if (replanner != nullptr) loop_setting.hooks.push_back(replanner.get());
  TrainingLoop loop(run, rank, communicator, loop_setting, start);
  RECMILL_ASSIGN_OR_RETURN(const LoopOutcome outcome, loop.run());
  if (order != nullptr) RECMILL_RETURN_IF_ERROR(order->close());
  RECMILL_ASSIGN_OR_RETURN(const Json ids, count_ids(run, rank, communicator));
  RECMILL_ASSIGN_OR_RETURN(const Json flattened, flattened_values(run, rank, communicator));
  Json profile;
  if (training.request.profile) {
    RECMILL_ASSIGN_OR_RETURN(profile, gather_profile(run, rank, communicator));
  }
  std::optional<store::FarCounts> far;
  if (may_have_far_rows(run.options)) {
    RECMILL_ASSIGN_OR_RETURN(far, gather_far(rank, communicator));
  }
  if (communicator.rank() != 0) return {};
  RECMILL_ASSIGN_OR_RETURN(training.summary,
                           summarize(training, rank, outcome, log->earlier_seconds()));
  if (far) {
    training.summary["far_lookups"] = far->lookups;
    training.summary["far_rows"] = far->rows;
  }
  if (!ids.empty()) training.summary["ids"] = ids;
  if (!flattened.empty()) training.summary["flattened"] = flattened;
  say_flattened(training, flattened, log->progress());
  if (!profile.is_null()) training.summary["profile"] = std::move(profile);
  RECMILL_RETURN_IF_ERROR(training.folder.write_summary(training.summary));
  say_how_it_ended(run.options, outcome, training.folder, log->progress());
  return log->close();
}

/// Features whose tuned schedule adds the rows of a bag in another order, on the CPU. None where
/// the record is no good: that is said when it is taken.
int64_t reordering_features(const ResolvedRun& run, Files& files) {
  const auto tuned = tuned_schedules(run, {}, files);
  const auto kernels = tuned.ok() ? kernels_of(tuned->schedules, run, files) : tuned.status();
  if (!kernels.ok()) return 0;
  return std::ranges::count_if(kernels->pool, [](const kernels::PoolKernel& kernel) {
    return kernel.of != nullptr && kernel.of->order == kernels::Order::reorders;
  });
}

void say_doubts(const ResolvedRun& run, Files& files) {
  const RunOptions& options = run.options;
  for (const std::string& doubt : reader::doubts_about_files(options.data, files))
    log_warning(doubt);
  if (options.train.deterministic || layers_are_on_gpu(options)) return;
  const auto pooled = run.placed == nullptr ? std::vector<bool>() : run.placed->send_pooled();
  const auto tables = std::ranges::count(pooled, true);
  std::vector<std::string> ways;
  if (tables > 0 && run.ranks > 1)
    ways.push_back(fmt::format("owners pool the bags of {} of {} tables", tables, pooled.size()));
  if (const int64_t features = reordering_features(run, files); features > 0)
    ways.push_back(fmt::format("tuned schedules pool the bags of {} of {} features", features,
                               run.spec.features.size()));
  for (const std::string& way : ways)
    log_info("train.deterministic = false: " + way + ", which adds rows in another order");
  if (ways.empty())
    log_info(
        "train.deterministic = false: ways that reorder sums may be chosen; none was, so the "
        "results are those of true");
}

}  // namespace

Result<Json> run_training(const RunOptions& options, const TrainingRequest& request,
                          const JobSetting& setting) {
  World& world = setting.world;
  RECMILL_ASSIGN_OR_RETURN(ResolvedRun run, resolve_run(options, world, setting.files));
  RECMILL_RETURN_IF_ERROR(check_judging(run));
  RECMILL_RETURN_IF_ERROR(open_hot_folder(run, setting.files));
  RECMILL_RETURN_IF_ERROR(
      choose_hot_rows(run, setting.identity, world, setting.files, setting.progress));
  RECMILL_RETURN_IF_ERROR(place_tables(run, setting.files));
  RECMILL_RETURN_IF_ERROR(check_memory(run, memory_ledger(run), world));
  if (world.has_first_rank()) say_doubts(run, setting.files);
  const RunFolder folder(setting.files, options.train.runs + "/" + options.name);
  RECMILL_RETURN_IF_ERROR(fit(run, request, setting, folder));
  run.keeps_rows = true;
  run.notes_inputs = !request.order.empty();
  RECMILL_RETURN_IF_ERROR(find_earlier_rows(run, request, folder, setting.files));
  const auto pool = make_pool(run.threads);
  CheckpointPublisher publisher(setting.files, folder.checkpoints(), run.ranks,
                                options.train.checkpoint.keep);
  Training training{run, request, setting, folder, *pool, publisher};
  const Status trained = world.run(
      run.ranks, [&](Communicator& communicator) { return train_rank(training, communicator); });
  if (trained.ok()) return training.summary;
  if (training.has_begun) {
    // The failure of training is the one to be told.
    (void)publisher.publish_left().ok();
    (void)checkpoint::remove_leftovers(setting.files, folder.checkpoints()).ok();
    (void)folder.remove_if_nothing_was_done().ok();
  }
  return trained;
}

}  // namespace recmill::train
