// SPDX-License-Identifier: Apache-2.0
#include "run/placement/replanner.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <span>
#include <utility>

#include "base/json/json.h"
#include "comm/gather_values.h"
#include "placement/cost_model.h"
#include "placement_plan/plan_file.h"
#include "stats/gather_counts.h"

namespace recmill::train {
namespace {

constexpr int64_t kCountedOf = 4;  // batches, of which one is counted
constexpr int kNice = 5;           // of the thread beside training

constexpr double kMiB = 1 << 20;

Result<stats::AccessCounter> fresh_counter(const ModelSpec& model) {
  return stats::AccessCounter::create(model, "");
}

Result<double> sum_over_ranks(double own, Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(const auto all, gather_values(own, communicator));
  return std::accumulate(all.begin(), all.end(), 0.0);
}

}  // namespace

Result<std::unique_ptr<Replanner>> Replanner::create(ReplanSetting setting, PlacementPlan plan,
                                                     const ModelSpec& model,
                                                     store::PlacedStore& store,
                                                     Communicator& communicator, ThreadPool& pool,
                                                     Tell tell, int64_t iteration) {
  RECMILL_ASSIGN_OR_RETURN(auto beside, communicator.duplicate());
  std::unique_ptr<Replanner> replanner(new Replanner(std::move(setting), std::move(plan), model,
                                                     store, communicator, std::move(beside), pool,
                                                     std::move(tell), iteration));
  RECMILL_ASSIGN_OR_RETURN(replanner->counter_, fresh_counter(model));
  return replanner;
}

Replanner::Replanner(ReplanSetting setting, PlacementPlan plan, const ModelSpec& model,
                     store::PlacedStore& store, Communicator& communicator,
                     std::unique_ptr<Communicator> beside, ThreadPool& pool, Tell tell,
                     int64_t iteration)
    : setting_(std::move(setting)),
      plan_(std::move(plan)),
      model_(model),
      store_(store),
      communicator_(communicator),
      beside_(std::move(beside)),
      pool_(pool),
      tell_(std::move(tell)),
      begin_(iteration) {}

Replanner::~Replanner() = default;

int64_t Replanner::bytes(const ModelSpec& model) {
  int64_t bytes = 0;
  for (const TableSpec& table : model.tables) bytes += table.rows;
  return bytes;
}

Status Replanner::see(const SparseBatch& batch, int64_t iteration) {
  if (is_moving_ && !store_.is_moving()) {
    is_moving_ = false;
    RECMILL_RETURN_IF_ERROR(tell_move(iteration));
  }
  if (look_.valid() || iteration < begin_) return {};
  if (iteration == begin_) {
    sent_before_ = communicator_.traffic().sent;
    counting_ = 0;
    since_begin_ = {};
  }
  if ((iteration - begin_) % kCountedOf != 0) return {};
  const Stopwatch watch;
  counter_->add(batch, pool_);
  counting_ += watch.seconds();
  return {};
}

Result<Replanner::Command> Replanner::next(int64_t iteration) {
  constexpr auto kNow = std::chrono::seconds(0);
  if (!outcome_ && look_.valid() && look_.wait_for(kNow) == std::future_status::ready) {
    RECMILL_ASSIGN_OR_RETURN(outcome_, look_.get());
  }
  if (outcome_) return outcome_->placed == nullptr ? Command::keep : Command::adopt;
  const bool due = !look_.valid() && iteration >= begin_ + setting_.every;
  return due && iteration < setting_.end ? Command::look : Command::go_on;
}

Result<LoopHook::Proposal> Replanner::propose(int64_t iteration) {
  RECMILL_ASSIGN_OR_RETURN(const Command command, next(iteration));
  return static_cast<Proposal>(command);
}

Status Replanner::adopt(Proposal proposal, int64_t iteration) {
  const auto command = static_cast<Command>(proposal);
  if (command == Command::go_on) return {};
  if (command == Command::look) {
    begin_look(iteration);
    return {};
  }
  if (!outcome_) {
    RECMILL_ASSIGN_OR_RETURN(outcome_, look_.get());
  }
  return end_look(iteration);
}

void Replanner::begin_look(int64_t iteration) {
  const auto iterations = static_cast<double>(std::max<int64_t>(1, iteration - begin_ - 1));
  const double sent = static_cast<double>(communicator_.traffic().sent - sent_before_) / iterations;
  look_ = std::async(std::launch::async, [this, iteration, sent] {
    // Best effort: where it is refused, the planner takes its share of the cores.
    (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
    auto outcome = look_together(iteration, sent);
    if (!outcome.ok()) beside_->abort(outcome.status());
    return outcome;
  });
}

// Beside training. Ends on all ranks when all are ready.
Result<Replanner::Outcome> Replanner::look_together(int64_t iteration, double sent) {
  Outcome outcome;
  RECMILL_ASSIGN_OR_RETURN(outcome.look.sent, sum_over_ranks(sent, *beside_));
  RECMILL_RETURN_IF_ERROR(stats::gather_counts(*counter_, *beside_));
  if (beside_->rank() == 0) decide(iteration, finish_counts(), outcome);
  RECMILL_RETURN_IF_ERROR(hand_out(outcome));
  RECMILL_ASSIGN_OR_RETURN(outcome.counter, fresh_counter(model_));
  RECMILL_RETURN_IF_ERROR(beside_->barrier());
  return outcome;
}

// On this thread, and on those that training leaves idle.
AccessCounts Replanner::finish_counts() const {
  const WaitGate::LowRank low(*setting_.waits);
  return counter_->finish(pool_);
}

// A plan comes where the one in force loses by what has changed, and the new one pays.
void Replanner::decide(int64_t iteration, AccessCounts counts, Outcome& outcome) {
  placement::Problem problem = setting_.problem;
  problem.counts = std::move(counts);
  Look& look = outcome.look;
  const double now = placement::rate(problem, plan_).seconds;
  look.rated = {expected_.value_or(now), now, setting_.gain};
  look.drifted = placement::has_drifted(look.rated);
  if (!look.drifted) return;
  auto proposal = placement::plan_placement(problem, setting_.planner, setting_.options);
  if (!proposal.ok()) {
    look.refusal = proposal.status().message();
    return;
  }
  const placement::Rating planned = placement::rate(problem, proposal->plan);
  look.refusal = planned.does_not_fit();
  if (!look.refusal.empty()) return;
  look.planned = planned.seconds;
  look.move = placement::move_between(problem, plan_, proposal->plan);
  if (placement::pays(look.rated, look.planned, look.move.seconds, setting_.end - iteration))
    outcome.plan = std::move(proposal->plan);
}

// Rank 0's plan, if there is one, to all ranks, which get it ready.
Status Replanner::hand_out(Outcome& outcome) {
  PlanFiles files;
  if (beside_->rank() == 0 && !outcome.plan.tables.empty()) files = encode_plan(outcome.plan);
  std::array sizes{std::ssize(files.text), std::ssize(files.rows)};
  RECMILL_RETURN_IF_ERROR(beside_->broadcast(std::as_writable_bytes(std::span(sizes)), 0));
  if (sizes[0] == 0) return {};
  files.text.resize(static_cast<size_t>(sizes[0]));
  files.rows.resize(static_cast<size_t>(sizes[1]));
  for (std::string* part : {&files.text, &files.rows})
    RECMILL_RETURN_IF_ERROR(beside_->broadcast(std::as_writable_bytes(std::span(*part)), 0));
  RECMILL_ASSIGN_OR_RETURN(const PlacementPlan plan, decode_plan(files, "the new plan"));
  RECMILL_ASSIGN_OR_RETURN(outcome.placed,
                           table::PlacedTables::create(plan, model_.tables, communicator_.ranks()));
  return {};
}

Status Replanner::end_look(int64_t iteration) {
  const bool adopts = outcome_->placed != nullptr;
  begin_ = adopts ? iteration + setting_.ahead + 1 : iteration;
  if (communicator_.rank() == 0) RECMILL_RETURN_IF_ERROR(tell_look(iteration));
  counter_ = std::move(outcome_->counter);
  if (adopts) {
    is_moving_ = true;
    expected_.reset();
    plan_ = std::move(outcome_->plan);
    RECMILL_RETURN_IF_ERROR(store_.place_from(begin_, std::move(outcome_->placed)));
  } else if (!expected_ || outcome_->look.drifted) {
    expected_ = outcome_->look.rated.now;  // a plan that is not replaced is what it is now
  }
  outcome_.reset();
  return {};
}

Status Replanner::tell_look(int64_t iteration) {
  const Look& look = outcome_->look;
  Json figures{{"expected_ms", look.rated.expected * 1e3},
               {"now_ms", look.rated.now * 1e3},
               {"sent_mib", look.sent / kMiB},
               {"counting_share", counting_ / since_begin_.seconds()}};
  if (!look.drifted) return tell_(iteration, figures, "");
  std::string words = fmt::format(
      "rows are looked up otherwise than when the plan came: {:.3g} ms of a batch predicted, "
      "{:.3g} "
      "then; ",
      look.rated.now * 1e3, look.rated.expected * 1e3);
  if (!look.refusal.empty()) return tell_(iteration, figures, words + "no plan: " + look.refusal);
  figures["planned_ms"] = look.planned * 1e3;
  words += fmt::format("a plan of {:.3g} ms that moves {:.1f} MiB of rows ", look.planned * 1e3,
                       look.move.bytes / kMiB);
  const bool adopts = outcome_->placed != nullptr;
  if (adopts) figures["from_iteration"] = begin_;
  words += adopts ? fmt::format("comes at iteration {}", begin_) : "does not pay";
  return tell_(iteration, figures, words);
}

Status Replanner::tell_move(int64_t iteration) {
  if (communicator_.rank() != 0) return {};
  const store::PlacedStore::Moved& moved = store_.moved();
  return tell_(iteration,
               {{"moved_rows", moved.rows},
                {"moved_mib", static_cast<double>(moved.bytes) / kMiB},
                {"moved_in_ms", moved.seconds * 1e3}},
               fmt::format("{} rows, {:.1f} MiB, have moved in {:.3f} s", moved.rows,
                           static_cast<double>(moved.bytes) / kMiB, moved.seconds));
}

}  // namespace recmill::train
