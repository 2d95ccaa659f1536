// SPDX-License-Identifier: Apache-2.0
// Whether the tuner chose well: one feature's schedule exchanged inside the fused run (RecFlex,
// figure 12), and all combinations of a few (the holistic straw man of section II-C as an oracle).
#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "bench/kernels/kernels_cases.h"
#include "bench/kernels/mutation.h"
#include "bench/kernels/schedules.h"
#include "bench/kernels/sides.h"

namespace recmill::bench {
namespace {

using kernels::FusedPool;
using kernels::PoolKernel;
using kernels::Schedule;
using kernels::tune::CandidateTime;
using kernels::tune::FamilyTuning;

constexpr int64_t kRounds = 9, kQuickRounds = 5;
constexpr int64_t kFinalPasses = 16;
constexpr size_t kLargest = 3, kRandom = 3;
constexpr size_t kAlternatives = 4;  // of each feature of the oracle
constexpr int64_t kLargeBatch = 512, kMiddleBatch = 256;

/// What the tuner timed of a class at the value that it chose, ascending; those left out that could
/// not win.
std::vector<CandidateTime> times_of(const FamilyTuning& tuning, size_t of_class) {
  std::vector<CandidateTime> timed;
  for (const auto& value : tuning.times.values) {
    if (value.value != tuning.choice.value) continue;
    for (const CandidateTime& candidate : value.classes[of_class].candidates) {
      if (may_win(candidate, tuning.times.deterministic)) timed.push_back(candidate);
    }
  }
  std::stable_sort(timed.begin(), timed.end(),
                   [](const auto& a, const auto& b) { return a.nanoseconds < b.nanoseconds; });
  return timed;
}

/// The schedules of a feature: the chosen one, then the others by the tuner's time.
std::vector<Schedule> schedules_of(const FamilyTuning& tuning, int64_t feature) {
  std::vector<Schedule> schedules;
  for (size_t c = 0; c < tuning.times.classes.size(); ++c) {
    const auto& features = tuning.times.classes[c].features;
    if (std::find(features.begin(), features.end(), feature) == features.end()) continue;
    schedules.push_back(tuning.choice.schedules[c].schedule);
    for (const CandidateTime& candidate : times_of(tuning, c)) {
      if (candidate.schedule != schedules.front()) schedules.push_back(candidate.schedule);
    }
  }
  return schedules;
}

/// A tuned workload with two batches, and fused runs of it with some schedules exchanged.
class Exchanges {
 public:
  static Result<Exchanges> make(const train::ResolvedRun& run, const BenchOptions& options) {
    Exchanges made;
    const KernelsBudget budget = kernels_budget(options);
    RECMILL_ASSIGN_OR_RETURN(made.tuned_, tuned_kernels(run, budget.tuning_seconds, posix_files()));
    WorkloadSizes sizes{0, 0, {kLargeBatch}};
    if (!options.quick) sizes.test_samples.push_back(kMiddleBatch);
    RECMILL_ASSIGN_OR_RETURN(made.workload_, KernelWorkload::make(run, sizes, posix_files()));
    RECMILL_ASSIGN_OR_RETURN(
        auto batches, PoolBatches::make(made.workload_.features(), made.workload_.test_batches));
    made.batches_ = std::make_unique<PoolBatches>(std::move(batches));
    made.rounds_ = options.quick ? kQuickRounds : kRounds;
    const FusedPool fused(made.tuned_.kernels.pool, made.tuned_.kernels.tile);
    made.maps_.resize(made.batches_->count());
    for (int64_t batch = 0; batch < made.batches_->count(); ++batch)
      fused.map(made.batches_->tasks(batch), made.workload_.pool->threads(), made.maps_[batch]);
    return made;
  }

  const FamilyTuning& tuning() const { return *tuned_.record.family("embedding_pool"); }
  int64_t rounds() const { return rounds_; }

  /// Features by their share of the first batch's time, the largest first.
  std::vector<int64_t> by_share() const {
    const FusedPool fused(tuned_.kernels.pool, tuned_.kernels.tile);
    const auto work = fused.work(batches_->tasks(0));
    std::vector<int64_t> order(work.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return work[a].cost() > work[b].cost(); });
    return order;
  }

  /// The tuned kernels with other schedules for some features.
  Result<FusedPool> exchanged(std::span<const int64_t> features,
                              std::span<const Schedule> schedules) const {
    std::vector<PoolKernel> kernels = tuned_.kernels.pool;
    for (size_t i = 0; i < features.size(); ++i) {
      RECMILL_ASSIGN_OR_RETURN(PoolKernel kernel, kernels::find_pool_kernel(schedules[i]));
      kernels[features[i]] = std::move(kernel);
    }
    return FusedPool(std::move(kernels), tuned_.kernels.tile);
  }

  struct Times {
    double features = 0.0, whole = 0.0;  // seconds of all batches
  };
  /// Runs the batches in the tuned map; `features` ascending.
  Times run(const FusedPool& fused, std::span<const int64_t> features) {
    Times times;
    std::vector<double> seconds(features.size(), 0.0);
    const Stopwatch watch;
    for (int64_t batch = 0; batch < batches_->count(); ++batch)
      run_timed(fused, batches_->tasks(batch), maps_[batch], features, *workload_.pool, seconds);
    times.whole = watch.seconds();
    times.features = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    return times;
  }

 private:
  TunedKernels tuned_;
  KernelWorkload workload_;
  std::unique_ptr<PoolBatches> batches_;
  std::vector<kernels::TaskMap> maps_;  // [batches]: counted by the tuned kernels
  int64_t rounds_ = kRounds;
};

struct Measured {
  std::vector<std::vector<double>> features, whole;  // [alternatives][rounds], seconds
};

/// All alternatives in turn, each `passes` times over the batches, in a new random order each
/// round; one round before, unmeasured.
Measured measure(Exchanges& exchanges, const std::vector<FusedPool>& alternatives,
                 std::span<const int64_t> features, int64_t passes) {
  Measured measured;
  measured.features.resize(alternatives.size());
  measured.whole.resize(alternatives.size());
  std::vector<size_t> order(alternatives.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (int64_t round = 0; round <= exchanges.rounds(); ++round) {
    const Random random(1, Purpose::test, static_cast<uint64_t>(round));
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
    for (size_t a : order) {
      Exchanges::Times times;
      for (int64_t pass = 0; pass < passes; ++pass) {
        const auto one = exchanges.run(alternatives[a], features);
        times.features += one.features / static_cast<double>(passes);
        times.whole += one.whole / static_cast<double>(passes);
      }
      if (round == 0) continue;
      measured.features[a].push_back(times.features);
      measured.whole[a].push_back(times.whole);
    }
  }
  return measured;
}

/// The chosen one against the best and the worst.
void report(const std::string& name, const std::string& metric, const Exchange& exchange,
            const BenchSink& sink) {
  BenchLine line;
  line.bench = "kernels";
  line.name = name;
  line.metric = metric;
  line.value = exchange.chosen * 1e6;
  line.unit = "us";
  line.rival = "best_candidate";
  line.ratio.ratio = exchange.best / exchange.chosen;
  sink(line);
  line.rival = "worst_candidate";
  line.ratio.ratio = exchange.worst / exchange.chosen;
  sink(line);
}

/// The chosen alternative (the first) beside those that were best and worst of all, once more and
/// longer: the least of many times is less than it would be again.
struct Finalists {
  Exchange first, again;
  Measured measured;
};
Finalists measure_finalists(Exchanges& exchanges, const std::vector<FusedPool>& alternatives,
                            std::span<const int64_t> features) {
  Finalists made;
  made.first = exchange_of(measure(exchanges, alternatives, features, 1).features, 0);
  std::vector<FusedPool> finalists{alternatives[0]};
  for (const size_t place : {made.first.best_place, made.first.worst_place}) {
    if (place != 0) finalists.push_back(alternatives[place]);
  }
  made.measured = measure(exchanges, finalists, features, kFinalPasses);
  made.again = exchange_of(made.measured.features, 0);
  return made;
}

Result<Exchange> exchange_feature(Exchanges& exchanges, int64_t feature) {
  std::vector<FusedPool> alternatives;
  const auto schedules = schedules_of(exchanges.tuning(), feature);
  for (const Schedule& schedule : schedules) {
    RECMILL_ASSIGN_OR_RETURN(auto made, exchanges.exchanged({&feature, 1}, {&schedule, 1}));
    alternatives.push_back(std::move(made));
  }
  const Finalists finalists = measure_finalists(exchanges, alternatives, {&feature, 1});
  log_info("feature " + std::to_string(feature) + ": chosen '" + schedules[0].name() +
           "', at first best in place of it '" + schedules[finalists.first.best_place].name() +
           "'");
  return finalists.again;
}

}  // namespace

Status run_mutation_case(const std::string& name, const train::ResolvedRun& run,
                         const BenchOptions& options, const BenchSink& sink) {
  RECMILL_ASSIGN_OR_RETURN(Exchanges exchanges, Exchanges::make(run, options));
  const auto order = exchanges.by_share();
  std::vector<int64_t> features(order.begin(), order.begin() + std::min(kLargest, order.size()));
  const Random random(2, Purpose::test);
  for (size_t i = 0; i < kRandom && !options.quick && order.size() > kLargest; ++i)
    features.push_back(order[kLargest + random.below(order.size() - kLargest, i)]);
  std::vector<Exchange> found;
  for (int64_t feature : features) {
    RECMILL_ASSIGN_OR_RETURN(const Exchange exchange, exchange_feature(exchanges, feature));
    report(name + "/" + run.spec.features[feature].name, "task_time", exchange, sink);
    found.push_back(exchange);
  }
  const Judgement judgement = judge(found);
  BenchLine line;
  line.bench = "kernels";
  line.name = name;
  line.unit = "%";
  line.value = 100.0 * judgement.median_regret;
  line.metric = judgement.told == 0 ? "median_regret_cannot_tell"
                : judgement.holds() ? "median_regret_holds"
                                    : "median_regret_does_not_hold";
  sink(line);
  return {};
}

Status run_oracle_case(const std::string& name, const train::ResolvedRun& run,
                       const BenchOptions& options, const BenchSink& sink) {
  RECMILL_ASSIGN_OR_RETURN(Exchanges exchanges, Exchanges::make(run, options));
  const auto order = exchanges.by_share();
  std::vector<int64_t> features(order.begin(), order.begin() + std::min(kLargest, order.size()));
  std::sort(features.begin(), features.end());
  std::vector<std::vector<Schedule>> schedules;  // the chosen one, then others evenly apart
  for (int64_t feature : features) {
    const auto all = schedules_of(exchanges.tuning(), feature);
    schedules.emplace_back();
    for (size_t k = 0; k < kAlternatives; ++k)
      schedules.back().push_back(all[k * (all.size() - 1) / (kAlternatives - 1)]);
  }
  std::vector<FusedPool> alternatives;
  for (const auto& combination : combinations(features.size(), kAlternatives)) {
    std::vector<Schedule> chosen;
    for (size_t i = 0; i < features.size(); ++i) chosen.push_back(schedules[i][combination[i]]);
    RECMILL_ASSIGN_OR_RETURN(auto made, exchanges.exchanged(features, chosen));
    alternatives.push_back(std::move(made));
  }
  const Finalists finalists = measure_finalists(exchanges, alternatives, features);
  report(name, "task_time", finalists.again, sink);
  report(name, "fused_time", exchange_of(finalists.measured.whole, 0), sink);
  return {};
}

Status run_schedules_case(const std::string& name, const train::ResolvedRun& run,
                          const BenchOptions& options, const BenchSink& sink) {
  const KernelsBudget budget = kernels_budget(options);
  RECMILL_ASSIGN_OR_RETURN(const TunedKernels tuned,
                           tuned_kernels(run, budget.tuning_seconds, posix_files()));
  const FamilyTuning& tuning = *tuned.record.family("embedding_pool");
  for (size_t c = 0; c < tuning.times.classes.size(); ++c) {
    const int64_t feature = tuning.times.classes[c].features.front();
    const auto timed = times_of(tuning, c);
    for (const CandidateTime& candidate : timed) {
      BenchLine line;
      line.bench = "kernels";
      line.name = name + "/" + run.spec.features[feature].name;
      line.metric = "task_time";
      line.value = timed[0].nanoseconds * 1e-3;
      line.unit = "us";
      line.rival = candidate.schedule.name();
      line.ratio = {candidate.nanoseconds / timed[0].nanoseconds, candidate.spread};
      sink(line);
    }
  }
  return {};
}

}  // namespace recmill::bench
