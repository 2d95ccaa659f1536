// SPDX-License-Identifier: Apache-2.0
// `bench cost_model`: what the cost model says of placement plans, held against runs of them.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "bench/benches.h"
#include "bench/cost_model/calibration.h"
#include "bench/cost_model/case_run.h"
#include "bench/cost_model/cost_model_cases.h"
#include "bench/cost_model/interface_counters.h"
#include "bench/cost_model/statistics.h"
#include "bench/placed/placed_shape.h"
#include "bench/start_together.h"
#include "comm/gather_values.h"
#include "comm/measure_links.h"
#include "placement/planners.h"

namespace recmill::bench {
namespace {

// What judgements are held to.
constexpr double kBytesLimit = 0.1, kOrderLimit = 0.9, kCommunicationLimit = 0.15,
                 kIterationLimit = 0.25;
constexpr double kMiB = 1 << 20;

constexpr uint64_t kRatedSeed = 3;  // of counts that the cost model goes by

constexpr int64_t kQuickSamples = 256, kQuickRows = 20'000, kQuickCounted = 1'000'000;

/// Over judged cases.
struct Judgement {
  std::vector<double> bytes, communication, iteration;  // relative errors
  std::vector<double> predicted, measured;              // seconds of an iteration
};

class CostModelBench {
 public:
  CostModelBench(const BenchOptions& options, Communicator& all, StartTogether& together,
                 const BenchSink& sink)
      : options_(options),
        all_(all),
        together_(together),
        sink_(sink),
        pool_(std::max<int>(1, static_cast<int>(options.threads) / all.ranks())),
        run_options_{.repetitions = options.pairs} {
    if (options.quick) run_options_.most_rows = kQuickRows;
  }

  Status run() {
    RECMILL_ASSIGN_OR_RETURN(links_, measure_links(all_));
    RECMILL_ASSIGN_OR_RETURN(run_options_.count_on_wire, can_count_on_wire());
    std::vector<RatedRun> fitted;
    for (const CostModelCase& of : cases(fitted_cases())) {
      RECMILL_ASSIGN_OR_RETURN(auto planned, plan(of));
      RECMILL_ASSIGN_OR_RETURN(CaseTook took, carry_out(of, planned.second));
      fitted.push_back(rate_run(planned.first, planned.second, std::move(took)));
    }
    calibration_ = calibrate(fitted);
    if (options_.wants("fit")) report_fit();
    Judgement judgement;
    for (const CostModelCase& of : cases(judged_cases()))
      if (options_.wants(of.name())) RECMILL_RETURN_IF_ERROR(judge(of, judgement));
    if (options_.cases.empty()) report(judgement);
    return {};
  }

 private:
  // Where a rank has a host of its own, and an interface, at all ranks.
  Result<bool> can_count_on_wire() {
    const char own = options_.world->neighbours() == 1 && sent_on_the_wire() ? 1 : 0;
    RECMILL_ASSIGN_OR_RETURN(const auto can, gather_values(own, all_));
    return std::ranges::count(can, 0) == 0;
  }

  std::vector<CostModelCase> cases(std::vector<CostModelCase> all) const {
    for (CostModelCase& of : all)
      if (options_.quick) of.work.samples = kQuickSamples;
    return all;
  }

  // And the problem that its costs are predicted on.
  Result<std::pair<placement::Problem, PlacementPlan>> plan(const CostModelCase& of) {
    const CostModelWork& work = of.work;
    const FrozenShape shape = small_shape(work.shape, work.dim, run_options_.most_rows);
    RECMILL_RETURN_IF_ERROR(count(shape, work));
    placement::Problem problem = small_problem(small_model(shape), planned_by_, all_.ranks(),
                                               links_, work.training, of.dedup);
    problem.samples = work.samples;
    for (DeviceSpec& device : problem.cluster.devices)
      device.memory_bytes +=
          static_cast<int64_t>(of.extra_memory * static_cast<double>(problem.total_bytes())) /
          all_.ranks();
    placement::PlannerOptions options;
    options.extra_memory = of.extra_memory;
    RECMILL_ASSIGN_OR_RETURN(auto proposal, plan_placement(problem, of.planner, options));
    problem.counts = rated_by_;
    return std::pair{std::move(problem), std::move(proposal.plan)};
  }

  // A plan leaves rows without copies that are rare in the counts it was made by: priced by the
  // same ones, it would look better than it is.
  Status count(const FrozenShape& shape, const CostModelWork& work) {
    const std::pair law{work.shape, work.zipf};
    if (counted_ == law) return {};
    const int64_t lookups = options_.quick ? kQuickCounted : kCounted;
    for (const auto& [seed, counts] :
         {std::pair{kCountedSeed, &planned_by_}, {kRatedSeed, &rated_by_}}) {
      RECMILL_ASSIGN_OR_RETURN(*counts, draw_counts(shape, work.zipf, seed, lookups, pool_));
    }
    counted_ = law;
    return {};
  }

  Result<CaseTook> carry_out(const CostModelCase& of, const PlacementPlan& plan) {
    RECMILL_ASSIGN_OR_RETURN(CaseTook took,
                             run_case(of, plan, all_, pool_, together_, run_options_));
    const auto [at, is_first] = looked_up_.emplace(of.work.name(), took.looked_up);
    if (at->second != took.looked_up)
      return Status::Failed(of.name() + ": looks up other rows than another plan");
    return took;
  }

  Status judge(const CostModelCase& of, Judgement& judgement) {
    RECMILL_ASSIGN_OR_RETURN(auto planned, plan(of));
    const Prediction predicted = predict(planned.first, planned.second, calibration_);
    RECMILL_ASSIGN_OR_RETURN(const CaseTook took, carry_out(of, planned.second));
    double error = 0;
    for (size_t rank = 0; rank < took.sent.size(); ++rank)
      error = std::max(error, relative_error(predicted.sent[rank], took.sent[rank]));
    judgement.bytes.push_back(error);
    judgement.communication.push_back(relative_error(predicted.communication, took.communication));
    judgement.iteration.push_back(relative_error(predicted.seconds, took.seconds));
    judgement.predicted.push_back(predicted.seconds);
    judgement.measured.push_back(took.seconds);
    const std::string sent = run_options_.count_on_wire ? "sent_on_the_wire" : "sent_in_messages";
    say(of.name(), sent, std::ranges::max(took.sent) / kMiB, "MiB");
    say(of.name(), "predicted_" + sent, std::ranges::max(predicted.sent) / kMiB, "MiB");
    say(of.name(), "communication", 1e3 * took.communication, "ms");
    say(of.name(), "predicted_communication", 1e3 * predicted.communication, "ms");
    say(of.name(), "iteration", 1e3 * took.seconds, "ms");
    say(of.name(), "predicted_iteration", 1e3 * predicted.seconds, "ms");
    return {};
  }

  void report_fit() const {
    std::vector<double> byte, message;
    for (const LinkSpec& link : links_) {
      if (link.byte_seconds <= 0) continue;  // of a rank to itself
      byte.push_back(link.byte_seconds);
      message.push_back(link.message_seconds);
    }
    say("fit", "measured_link", 1e-6 / median(byte), "MB/s");
    say("fit", "measured_message", 1e6 * median(message), "us");
    say("fit", "bytes_sent", calibration_.wire_factor, "of predicted");
    say("fit", "bytes_sent_besides", calibration_.wire_bytes / 1024, "KiB");
    say("fit", "link_seconds", calibration_.link_factor, "of measured");
    say("fit", "message", 1e6 * calibration_.message_seconds, "us");
    say("fit", "lookups", 1e9 * calibration_.lookup_byte_seconds, "s/GB");
    say("fit", "rest", 1e9 * calibration_.batch_byte_seconds, "s/GB of the batch");
  }

  void report(const Judgement& of) const {
    const char* error = "relative error";
    say("bytes", "median_error", median(of.bytes), error, kBytesLimit);
    say("bytes", "largest_error", std::ranges::max(of.bytes), error, kBytesLimit);
    say("order", "spearman", spearman(of.predicted, of.measured), "correlation", kOrderLimit);
    say("communication", "median_error", median(of.communication), error, kCommunicationLimit);
    say("iteration", "median_error", median(of.iteration), error, kIterationLimit);
  }

  void say(const std::string& name, const std::string& metric, double value,
           const std::string& unit, double limit = 0) const {
    if (all_.rank() != 0) return;
    BenchLine line;
    line.bench = "cost_model";
    line.name = name;
    line.metric = metric;
    line.value = value;
    line.unit = unit;
    line.limit = limit;
    if (limit > 0) line.of_limit = value / limit;
    line.foreign_load = together_.foreign_load();
    sink_(line);
  }

  const BenchOptions& options_;
  Communicator& all_;
  StartTogether& together_;
  const BenchSink& sink_;
  ThreadPool pool_;
  RunOptions run_options_;
  std::vector<LinkSpec> links_;
  std::pair<std::string, double> counted_;  // shape and law of
  AccessCounts planned_by_, rated_by_;
  std::map<std::string, uint32_t> looked_up_;  // by CostModelWork::name()
  Calibration calibration_;
};

}  // namespace

Status run_cost_model_bench(const BenchOptions& options, const BenchSink& sink) {
  RECMILL_ASSIGN_OR_RETURN(const auto all, ranks_of_bench("cost_model", *options.world));
  if (all == nullptr) return {};  // more processes than are needed
  RECMILL_ASSIGN_OR_RETURN(StartTogether together, StartTogether::make(*all));
  return CostModelBench(options, *all, together, sink).run();
}

}  // namespace recmill::bench
