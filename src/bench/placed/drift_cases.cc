// SPDX-License-Identifier: Apache-2.0
// `bench placed`, cases `drift_dedup` and `drift_nodedup`: lookups that change while rows train.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/clock.h"
#include "base/json/json.h"
#include "bench/looked_up_rows.h"
#include "bench/placed/placed_cases.h"
#include "bench/placed/placed_shape.h"
#include "comm/gather_values.h"
#include "comm/measure_links.h"
#include "placement/planners.h"
#include "run/placement/replanner.h"
#include "store/placed/placed_store.h"

namespace recmill::bench {
namespace {

using train::Replanner;

constexpr int64_t kDim = 64;
constexpr double kZipf = 1.2;
constexpr int kSlices = 8;
constexpr int64_t kWindow = 16, kDrift = 3 * kWindow, kIterations = 3 * kDrift;

struct Iteration {
  double seconds = 0, sent = 0;  // bytes, of all ranks
};

class DriftCase {
 public:
  DriftCase(const BenchOptions& options, Communicator& all, bool dedup)
      : all_(all),
        pool_(std::max<int>(1, static_cast<int>(options.threads) / all.ranks())),
        dedup_(dedup),
        shape_(small_shape("kaggle", kDim)),
        model_(small_model(shape_)),
        draw_(shape_, kZipf, kTimedSeed) {}

  Status run(const BenchSink& sink) {
    RECMILL_ASSIGN_OR_RETURN(rows_,
                             LookedUpRows::make(kRankSamples, std::ssize(model_.features), kDim));
    RECMILL_RETURN_IF_ERROR(prepare_stores());
    for (int64_t i = 0; i < kIterations; ++i) RECMILL_RETURN_IF_ERROR(iterate(i));
    if (all_.rank() == 0) report(sink);
    return {};
  }

 private:
  Status prepare_stores() {
    RECMILL_ASSIGN_OR_RETURN(const auto links, measure_links(all_));
    RECMILL_ASSIGN_OR_RETURN(const auto counts,
                             draw_counts(shape_, kZipf, kCountedSeed, kCounted, pool_));
    train::ReplanSetting setting;
    setting.problem =
        small_problem(model_, counts, all_.ranks(), links, /*training=*/!dedup_, dedup_);
    setting.every = kWindow;
    setting.end = kIterations * 10;  // as if training went on
    RECMILL_ASSIGN_OR_RETURN(auto proposal,
                             plan_placement(setting.problem, setting.planner, setting.options));
    const auto make = [&](bool dedup) -> Result<std::unique_ptr<store::PlacedStore>> {
      RECMILL_ASSIGN_OR_RETURN(
          auto placed, table::PlacedTables::create(proposal.plan, model_.tables, all_.ranks()));
      store::ShardedOptions placing;
      placing.dedup_fetch = dedup;
      placing.share_rows = false;  // what is sent is counted
      return store::PlacedStore::create(model_, 1, all_, pool_, std::move(placed), placing);
    };
    RECMILL_ASSIGN_OR_RETURN(store_, make(dedup_));
    RECMILL_ASSIGN_OR_RETURN(fixed_, make(true));
    const auto tell = [this](int64_t, const Json& figures, const std::string&) {
      if (figures.contains("counting_share"))
        counting_ = std::max(counting_, figures["counting_share"].get<double>());
      if (figures.contains("moved_mib")) moved_mib_ = figures["moved_mib"].get<double>();
      if (figures.contains("from_iteration")) ++plans_;
      return Status();
    };
    RECMILL_ASSIGN_OR_RETURN(
        replanner_, Replanner::create(std::move(setting), std::move(proposal.plan), model_, *store_,
                                      all_, pool_, tell, 0));
    return {};
  }

  // From kDrift on each row is looked up as that half a table away was.
  SparseBatch batch_of(int64_t iteration) {
    SparseBatch sparse;
    draw_.draw((iteration * all_.ranks() + all_.rank()) * kRankSamples, kRankSamples, sparse,
               pool_);
    if (iteration < kDrift) return sparse;
    for (size_t f = 0; f < sparse.features.size(); ++f) {
      const int64_t rows = model_.tables[f].rows;
      for (int64_t& row : sparse.features[f].rows) row = (row + rows / 2) % rows;
    }
    return sparse;
  }

  Status train(store::PlacedStore& store, const SparseBatch& sparse, int64_t iteration,
               uint32_t& looked_up) {
    RECMILL_ASSIGN_OR_RETURN(const auto prepared,
                             store.prepare(part_of_batch(sparse, all_.rank(), all_.ranks(), kSlices,
                                                         iteration, store::Purpose::train)));
    Stream stream(pool_);
    RECMILL_RETURN_IF_ERROR(store.lookup(*prepared, rows_.output(), stream));
    looked_up = rows_.checksum();
    const store::Update update{prepared.get(), rows_.gradient()};
    return store.update({&update, 1}, {iteration, 1.0}, stream);
  }

  Status iterate(int64_t iteration) {
    const SparseBatch sparse = batch_of(iteration);
    uint32_t ours = 0, expected = 0;
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    const uint64_t before = all_.traffic().sent;
    const Stopwatch watch;
    RECMILL_RETURN_IF_ERROR(train(*store_, sparse, iteration, ours));
    const auto sent = static_cast<double>(all_.traffic().sent - before);
    RECMILL_RETURN_IF_ERROR(replanner_->see(sparse, iteration));
    train::LoopHook::Proposal proposal = 0;
    if (all_.rank() == 0) {
      RECMILL_ASSIGN_OR_RETURN(proposal, replanner_->propose(iteration + 1));
    }
    RECMILL_RETURN_IF_ERROR(all_.broadcast(std::as_writable_bytes(std::span(&proposal, 1)), 0));
    RECMILL_RETURN_IF_ERROR(replanner_->adopt(proposal, iteration + 1));
    const double seconds = watch.seconds();
    if (static_cast<Replanner::Command>(proposal) == Replanner::Command::adopt)
      in_force_ = iteration + 2;
    RECMILL_RETURN_IF_ERROR(train(*fixed_, sparse, iteration, expected));
    if (ours != expected)
      return Status::Failed(
          fmt::format("drift: iteration {} looks up other rows than where they stay", iteration));
    RECMILL_ASSIGN_OR_RETURN(const auto of_all, gather_values(sent, all_));
    iterations_.push_back({seconds, std::accumulate(of_all.begin(), of_all.end(), 0.0)});
    return {};
  }

  double mean_sent(int64_t begin, int64_t end) const {
    double sent = 0;
    for (int64_t i = begin; i < end; ++i) sent += iterations_[i].sent;
    return sent / static_cast<double>(end - begin) / (1 << 20);
  }

  void report(const BenchSink& sink) const {
    std::vector<double> seconds;
    for (const Iteration& iteration : iterations_) seconds.push_back(iteration.seconds);
    std::ranges::sort(seconds, std::greater());
    const double middle = median(seconds);
    const auto say = [&](const std::string& metric, double value, const std::string& unit) {
      BenchLine line;
      line.bench = "placed";
      line.name = dedup_ ? "drift_dedup" : "drift_nodedup";
      line.metric = metric;
      line.value = value;
      line.unit = unit;
      sink(line);
    };
    say("median_iteration", 1e3 * middle, "ms");
    say("longest_iteration", 1e3 * seconds[0], "ms");
    say("second_longest_iteration", 1e3 * seconds[1], "ms");
    say("iterations_above_3_medians",
        static_cast<double>(
            std::ranges::count_if(seconds, [&](double s) { return s > 3 * middle; })),
        "iterations");
    say("new_plans", plans_, "plans");
    say("counting_share", counting_, "of time");
    say("sent_before", mean_sent(0, kDrift), "MiB");
    const int64_t until = in_force_ < 0 ? kIterations : std::min(in_force_, kIterations);
    if (until > kDrift) say("sent_drifted", mean_sent(kDrift, until), "MiB");
    if (until + 1 >= kIterations) return;
    say("iterations_until_new_plan", static_cast<double>(until - kDrift), "iterations");
    say("moved", moved_mib_, "MiB");
    say("sent_after", mean_sent(until + 1, kIterations), "MiB");
  }

  Communicator& all_;
  ThreadPool pool_;
  const bool dedup_;
  const FrozenShape shape_;
  const ModelSpec model_;
  const ShapeDraw draw_;
  LookedUpRows rows_;
  std::unique_ptr<store::PlacedStore> store_, fixed_;
  std::unique_ptr<Replanner> replanner_;
  std::vector<Iteration> iterations_;
  int64_t in_force_ = -1;  // the iteration that the new plan came with
  double counting_ = 0, moved_mib_ = 0, plans_ = 0;
};

}  // namespace

Status run_drift_cases(const BenchOptions& options, Communicator& all, const BenchSink& sink) {
  for (const bool dedup : {false, true}) {
    if (!options.wants(dedup ? "drift_dedup" : "drift_nodedup")) continue;
    RECMILL_RETURN_IF_ERROR(DriftCase(options, all, dedup).run(sink));
  }
  return {};
}

}  // namespace recmill::bench
