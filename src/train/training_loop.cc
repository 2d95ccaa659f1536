// SPDX-License-Identifier: Apache-2.0
#include "train/training_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "comm/gather_values.h"
#include "run/gpu/gpu_run.h"
#include "run/lookahead/run_cache.h"

namespace recmill::train {

TrainingLoop::TrainingLoop(const ResolvedRun& run, Rank& rank, Communicator& communicator,
                           const LoopSetting& setting, const LoopState& start)
    : run_(run),
      rank_(rank),
      communicator_(communicator),
      setting_(setting),
      state_(start),
      saved_iteration_(start.position.iteration > 0 ? start.position.iteration : -1),
      window_(run.options.train.window) {
  outcome_.samples = reported_samples_ = state_.window.total;
  window_.restore(state_.window);
  state_.window = {};
}

Result<LoopOutcome> TrainingLoop::run() {
  BatchSchedule schedule = run_.schedule(communicator_.rank());
  if (state_.early_stop.stopped(run_.options.train.early_stop)) {
    schedule.epochs = 0;  // training is over: the stream is one evaluation
    outcome_.ending = Ending::early_stop;
    if (setting_.log != nullptr) {
      setting_.log->progress().say(
          fmt::format("had stopped early after iteration {}: nothing is left to train",
                      state_.position.iteration));
    }
  }
  const auto stage = make_data_stage(run_, rank_, schedule, state_.position, state_.schedule);
  Result<LoopOutcome> outcome = go_through(*stage);
  // The stages of other ranks may wait for this one, and this one's for them.
  if (!outcome.ok()) communicator_.abort(outcome.status());
  return outcome;
}

Result<LoopOutcome> TrainingLoop::go_through(DataStage& stage) {
  RECMILL_RETURN_IF_ERROR(communicator_.barrier());
  rank_.trainer->stages().clock().restart();
  while (!stop_) {
    rank_.trainer->stages().enter(Stage::data);
    auto next = stage.next();
    if (!next.ok()) return end_by(next.status());
    auto batch = *std::move(next);
    if (batch == nullptr) break;
    tell_of_cache(*batch);
    RECMILL_RETURN_IF_ERROR(make_way(*batch));
    if (batch->purpose == store::Purpose::train) {
      RECMILL_RETURN_IF_ERROR(train(*batch));
    } else {
      RECMILL_RETURN_IF_ERROR(evaluate(*batch));
    }
    stage.recycle(std::move(batch));
  }
  // Whoever interrupts a run wants to go on from there.
  rank_.trainer->stages().enter(Stage::checkpoint);
  const bool saves = run_.options.train.checkpoint.at_end || outcome_.ending == Ending::interrupted;
  if (saves && saved_iteration_ != state_.position.iteration) RECMILL_RETURN_IF_ERROR(save());
  RECMILL_RETURN_IF_ERROR(setting_.saver.wait());
  if (setting_.commits != nullptr) RECMILL_RETURN_IF_ERROR(setting_.commits->wait());
  rank_.trainer->stages().enter(Stage::data);
  outcome_.state = state_;
  outcome_.state.window = window_.contents();
  return outcome_;
}

/// What has been trained is saved where the configuration is to blame, as of a cache that turns out
/// to be too small: every rank hears of that before the same batch.
Status TrainingLoop::end_by(const Status& why) {
  const int64_t iteration = state_.position.iteration;
  if (why.code() != Status::Code::bad_request || iteration == 0 || saved_iteration_ == iteration)
    return why;
  RECMILL_RETURN_IF_ERROR(save());
  RECMILL_RETURN_IF_ERROR(setting_.saver.wait());
  return Status::BadRequest(
      fmt::format("{} (a checkpoint after iteration {} is kept)", why.message(), iteration));
}

void TrainingLoop::tell_of_cache(const RankBatch& batch) {
  if (setting_.log == nullptr || batch.plan == nullptr || batch.plan->step != 0) return;
  if (batch.plan->cache == nullptr) return;
  const bool apart = run_.ranks > 1 && !communicator_.shares_memory();
  setting_.log->progress().say(line_of(*batch.plan->cache, run_, apart));
  const std::string shortage = line_of_shortage(run_.options.lookahead, *batch.plan->cache);
  if (!shortage.empty()) setting_.log->progress().say(shortage);
}

Status TrainingLoop::train(const RankBatch& batch) {
  const TrainOptions& options = run_.options.train;
  Stopwatch watch;
  const double scale = rank_.learning_rate.scale(batch.before.iteration);
  RECMILL_ASSIGN_OR_RETURN(const StepResult step,
                           rank_.trainer->train(batch, store::Step{batch.before.iteration, scale}));
  StageGate& stages = rank_.trainer->stages();
  stages.enter(Stage::scores);
  RECMILL_RETURN_IF_ERROR(gather_scores(communicator_, batch, step, scores_));
  // Of several ranks all ask each other: when rank 0 writes a line, the others do not know.
  if (communicator_.ranks() > 1) {
    RECMILL_ASSIGN_OR_RETURN(far_, far_of_step());
  }
  outcome_.seconds += watch.seconds();
  outcome_.samples += step.samples;
  for (LoopHook* const hook : setting_.hooks)
    RECMILL_RETURN_IF_ERROR(hook->see(batch.sparse, batch.before.iteration));
  state_.position = batch.after;
  state_.dictionaries = batch.dictionaries;
  RECMILL_RETURN_IF_ERROR(follow_schedule(batch));
  if (setting_.order != nullptr) RECMILL_RETURN_IF_ERROR(setting_.order->write(batch));
  if (setting_.log != nullptr) {
    window_.add(scores_.view());
    RECMILL_RETURN_IF_ERROR(report(batch, scale));
  }
  const bool interrupted = setting_.interrupted != nullptr && setting_.interrupted->load();
  RECMILL_RETURN_IF_ERROR(agree(interrupted));
  stop_ = agreed_[0] != 0;
  if (stop_) outcome_.ending = Ending::interrupted;
  for (size_t h = 0; h < setting_.hooks.size(); ++h)
    RECMILL_RETURN_IF_ERROR(setting_.hooks[h]->adopt(agreed_[h + 1], state_.position.iteration));
  stages.enter(Stage::checkpoint);
  if (setting_.commits != nullptr) {
    if (RowCommits::needs_room(agreed_.back())) RECMILL_RETURN_IF_ERROR(setting_.saver.wait());
    RECMILL_RETURN_IF_ERROR(
        setting_.commits->adopt(agreed_.back(), [this] { return whole_state(); }));
  }
  RECMILL_RETURN_IF_ERROR(setting_.saver.advance());
  const int64_t every = options.checkpoint.every;
  if (every > 0 && batch.after.iteration % every == 0) {
    RECMILL_RETURN_IF_ERROR(save());
  }
  return {};
}

Status TrainingLoop::follow_schedule(const RankBatch& batch) {
  if (rank_.schedules == nullptr) return {};
  const auto over = rank_.schedules->trained(batch);
  state_.schedule = rank_.schedules->progress();
  return over && setting_.log != nullptr ? setting_.log->schedule(*over) : Status();
}

// Every rank comes to the same loss.
Status TrainingLoop::judge_schedule(const RankBatch& batch) {
  RECMILL_ASSIGN_OR_RETURN(const auto over, rank_.schedules->scored(batch, scores_.view()));
  state_.schedule = rank_.schedules->progress();
  return over && setting_.log != nullptr ? setting_.log->schedule(*over) : Status();
}

LoopState TrainingLoop::whole_state() const {
  LoopState state = state_;
  state.window = window_.contents();
  return state;
}

Status TrainingLoop::save(SavedAs as) {
  rank_.trainer->stages().clock().disturb();
  const LoopState state = whole_state();
  saved_iteration_ = state.position.iteration;
  if (setting_.commits != nullptr) RECMILL_RETURN_IF_ERROR(setting_.commits->commit(state));
  return setting_.saver.save(state, as);
}

// An evaluation changes nothing: the state is that after the iteration before it.
Status TrainingLoop::keep_best() {
  rank_.trainer->stages().enter(Stage::checkpoint);
  RECMILL_RETURN_IF_ERROR(saved_iteration_ == state_.position.iteration
                              ? setting_.saver.mark_best(saved_iteration_)
                              : save(SavedAs::best));
  rank_.trainer->stages().enter(Stage::data);
  return {};
}

Status TrainingLoop::make_way(const RankBatch& batch) {
  const bool moves = std::ranges::any_of(setting_.hooks, [&](const LoopHook* hook) {
    return hook->moves_rows(batch.before.iteration);
  });
  return moves ? setting_.saver.wait() : Status();
}

// Rows that are replaced for an evaluation are no checkpoint's.
Status TrainingLoop::make_way_for_means() {
  const UnseenMeans* const means = rank_.unseen_means.get();
  if (means == nullptr || means->are_in()) return {};
  return setting_.saver.wait();
}

// Rank 0 decides and tells the others, so that all leave, and change, after the same iteration.
Status TrainingLoop::agree(bool stop) {
  agreed_.assign(2 + setting_.hooks.size(), 0);
  if (communicator_.rank() == 0) {
    agreed_[0] = stop ? 1 : 0;
    for (size_t h = 0; h < setting_.hooks.size(); ++h) {
      RECMILL_ASSIGN_OR_RETURN(agreed_[h + 1],
                               setting_.hooks[h]->propose(state_.position.iteration));
    }
    if (setting_.commits != nullptr)
      agreed_.back() = setting_.commits->propose(state_.position.iteration);
  }
  if (communicator_.ranks() == 1) return {};
  return communicator_.broadcast(std::as_writable_bytes(std::span(agreed_)), 0);
}

/// What all ranks count of the iteration that has ended; none: there are no far rows.
Result<std::optional<store::FarCounts>> TrainingLoop::far_of_step() const {
  if (!may_have_far_rows(run_.options)) return std::optional<store::FarCounts>();
  store::FarCounts all = rank_.store->stats().last_far;
  if (communicator_.ranks() > 1) {
    RECMILL_ASSIGN_OR_RETURN(const auto of_ranks, gather_values(all, communicator_));
    all = {};
    for (const store::FarCounts& of_rank : of_ranks) all += of_rank;
  }
  return std::optional(all);
}

Status TrainingLoop::report(const RankBatch& batch, double learning_rate_scale) {
  const int64_t every = run_.options.train.log_every;
  // Metrics of a large window take long on a busy machine: a report has a twentieth of the time.
  const double wait = std::max(1.0, 20.0 * report_seconds_);
  const bool due = every > 0 ? batch.after.iteration % every == 0 : since_report_.seconds() >= wait;
  if (!due && !batch.ends_training) {
    setting_.log->progress().show(window_.total(), detail_);
    return {};
  }
  if (communicator_.ranks() == 1) {
    RECMILL_ASSIGN_OR_RETURN(far_, far_of_step());
  }
  const double seconds = since_report_.lap();
  const double rate = static_cast<double>(outcome_.samples - reported_samples_) / seconds;
  reported_samples_ = outcome_.samples;
  const metrics::Metrics metrics = window_.metrics();
  report_seconds_ = since_report_.seconds();
  detail_ = brief(metrics);
  setting_.log->progress().show(window_.total(), detail_);
  return setting_.log->training({.iteration = batch.after.iteration,
                                 .samples = window_.total(),
                                 .seconds = outcome_.seconds,
                                 .samples_per_second = rate,
                                 .learning_rate_scale = learning_rate_scale,
                                 .far = far_,
                                 .kind = batch.kind},
                                metrics);
}

Status TrainingLoop::evaluate(const RankBatch& batch) {
  StageGate& stages = rank_.trainer->stages();
  stages.hold(Stage::evaluation);
  RECMILL_RETURN_IF_ERROR(make_way_for_means());
  RECMILL_ASSIGN_OR_RETURN(const StepResult step, score(rank_, batch));
  RECMILL_RETURN_IF_ERROR(gather_scores(communicator_, batch, step, scores_));
  if (batch.judges) {
    RECMILL_RETURN_IF_ERROR(judge_schedule(batch));
    stages.release(Stage::data);
    return {};
  }
  calibrate(scores_, run_.options.train.negative_keep);
  held_out_.add(scores_.view());
  if (batch.last_of_pass) RECMILL_RETURN_IF_ERROR(finish_evaluation());
  stages.release(Stage::data);
  return batch.last_of_pass && is_best_ ? keep_best() : Status();
}

Status TrainingLoop::finish_evaluation() {
  const TrainOptions& options = run_.options.train;
  const metrics::Metrics metrics = held_out_.metrics();
  held_out_.clear();
  outcome_.held_out = metrics;
  const int64_t iteration = state_.position.iteration;
  const auto value = value_of(metrics, options.early_stop.metric);
  is_best_ = options.checkpoint.keep_best &&
             take_if_better(options.early_stop.metric, value, iteration, state_.best);
  if (is_best_) outcome_.best = metrics;
  if (state_.early_stop.after(options.early_stop, iteration, value)) {
    outcome_.ending = Ending::early_stop;
    stop_ = true;
  }
  if (setting_.log == nullptr) return {};
  RECMILL_RETURN_IF_ERROR(setting_.log->evaluation(iteration, metrics));
  if (is_best_)
    setting_.log->progress().say(
        fmt::format("iteration {}: the best so far by {}: its checkpoint is kept", iteration,
                    name_of(options.early_stop.metric)));
  if (!value && (options.checkpoint.keep_best || options.early_stop.patience > 0))
    setting_.log->progress().say(
        fmt::format("iteration {}: the evaluation rows do not define {}: no gain", iteration,
                    name_of(options.early_stop.metric)));
  return {};
}

}  // namespace recmill::train
