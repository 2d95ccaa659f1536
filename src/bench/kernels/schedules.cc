// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/log.h"
#include "base/temporary_folder.h"
#include "device/processor.h"
#include "kernels/tune/tuner.h"
#include "run/rank.h"
#include "run/tuning_data.h"
#include "store/tables/table_rows.h"
#include "tuning/tuning.h"

namespace recmill::bench {
namespace {

using kernels::FusedPool;
using kernels::PoolKernel;
using kernels::Schedule;
using kernels::tune::FusedParameters;

constexpr size_t kFinalists = 8;
constexpr int64_t kFinalRounds = 9;
constexpr int64_t kWholeTile = 4096;

/// One schedule for all features: the work is guessed, as where nothing was tuned.
Result<SingleSchedule> single(const Schedule& schedule, int64_t tile, size_t features,
                              bool or_default) {
  RECMILL_ASSIGN_OR_RETURN(PoolKernel kernel, kernels::find_pool_kernel(schedule));
  kernel.staging = kernel.staging && or_default;
  return SingleSchedule{schedule, tile, FusedPool(std::vector(features, kernel), tile)};
}

double seconds_of(const SingleSchedule& of, const PoolBatches& batches, ThreadPool& pool) {
  const Stopwatch watch;
  for (int64_t batch = 0; batch < batches.count(); ++batch)
    run_fused(of.fused, batches, batch, pool);
  return watch.seconds();
}

/// All schedules that are valid for every feature, at all tiles.
Result<std::vector<SingleSchedule>> singles(const KernelWorkload& workload,
                                            const SingleRequest& request) {
  RECMILL_ASSIGN_OR_RETURN(
      const auto subject,
      train::make_pool_subject(workload.run, workload.tables, workload.tune_batches));
  std::vector<SingleSchedule> all;
  for (const FusedParameters& value : train::fused_values(this_processor().l2_bytes)) {
    if (value.defaults) continue;  // they are among the candidates of the others
    std::vector<std::vector<Schedule>> lists;
    for (size_t c = 0; c < subject->work().classes.size(); ++c)
      lists.push_back(subject->schedules(c, value));
    for (const Schedule& schedule : in_all(lists)) {
      const bool known = std::ranges::any_of(all, [&](const SingleSchedule& other) {
        return other.tile == value.tile && other.schedule == schedule;
      });
      if (known || (request.admits && !request.admits(schedule))) continue;
      RECMILL_ASSIGN_OR_RETURN(
          auto made,
          single(schedule, value.tile, workload.run.spec.features.size(), request.or_default));
      all.push_back(std::move(made));
    }
  }
  return all;
}

Result<store::StoreKernels> kernels_from(const kernels::tune::TuningRecord& record,
                                         const train::ResolvedRun& run, const std::string& source) {
  RECMILL_ASSIGN_OR_RETURN(const auto schedules, train::schedules_from(record, run, {}, source));
  return train::kernels_of(schedules, run);
}

/// Measures a subject in this run and chooses.
Result<TunedKernels> chosen_for(const train::ResolvedRun& run, kernels::tune::PoolSubject& subject,
                                const kernels::tune::TunerOptions& options, ThreadPool& pool,
                                const std::string& source) {
  const std::atomic<bool> never{false};
  const SteadyClock clock;
  kernels::tune::FamilyTuning family;
  RECMILL_ASSIGN_OR_RETURN(
      family.times, kernels::tune::measure(
                        subject, options, {}, clock, pool, [](const auto&) { return Status{}; },
                        [](const auto&) {}, never));
  RECMILL_ASSIGN_OR_RETURN(family.choice, kernels::tune::choose(family.times));
  RECMILL_ASSIGN_OR_RETURN(
      const double seconds,
      kernels::tune::measure_fused(subject, family.choice, kFinalRounds, clock, pool));
  family.measured_nanoseconds = seconds * 1e9;
  TunedKernels made;
  RECMILL_ASSIGN_OR_RETURN(made.record.of, train::tuned_for(run, {}));
  made.record.families.push_back(std::move(family));
  RECMILL_ASSIGN_OR_RETURN(made.kernels, kernels_from(made.record, run, source));
  return made;
}

/// Lookups alone, on a batch of the largest and one of the mean size, tasks of whole features: what
/// a workload can be tuned in when there are only seconds.
Result<TunedKernels> tune_briefly(const train::ResolvedRun& run, double budget_seconds,
                                  Files& files) {
  const auto pool = train::make_pool(run.threads);
  train::BatchesRequest request{.seed = kTuneSeed};
  const auto& sizes = run.options.tune.batch_sizes;
  request.samples = {run.options.train.batch_size};
  if (!sizes.empty())
    request.samples = {
        *std::max_element(sizes.begin(), sizes.end()),
        std::max<int64_t>(1, std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) /
                                 static_cast<int64_t>(sizes.size()))};
  RECMILL_ASSIGN_OR_RETURN(const auto batches, train::read_batches(run, request, *pool, files));
  RECMILL_ASSIGN_OR_RETURN(
      const auto tables,
      store::create_tables(run.spec, static_cast<uint64_t>(run.options.train.seed), 0, 1, *pool));
  RECMILL_ASSIGN_OR_RETURN(const auto subject, train::make_pool_subject(run, tables, batches));
  const int64_t l2_bytes = this_processor().l2_bytes;
  kernels::tune::TunerOptions options;
  options.values = {
      {kernels::kWholeFeature, 0, true}, {kWholeTile, 0}, {kWholeTile, l2_bytes * 7 / 8}};
  options.budget_seconds = budget_seconds;
  return chosen_for(run, *subject, options, *pool, "tuned briefly");
}

}  // namespace

std::vector<Schedule> in_all(std::span<const std::vector<Schedule>> lists) {
  std::vector<Schedule> found;
  if (lists.empty()) return found;
  for (const Schedule& schedule : lists[0]) {
    const bool everywhere = std::all_of(lists.begin(), lists.end(), [&](const auto& list) {
      return std::find(list.begin(), list.end(), schedule) != list.end();
    });
    if (everywhere) found.push_back(schedule);
  }
  return found;
}

std::vector<size_t> least(std::span<const double> values, size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  order.resize(std::min(count, order.size()));
  return order;
}

Result<SingleSchedule> best_single(const KernelWorkload& workload, const SingleRequest& request) {
  RECMILL_ASSIGN_OR_RETURN(const auto all, singles(workload, request));
  RECMILL_ASSIGN_OR_RETURN(const auto batches,
                           PoolBatches::make(workload.features(), workload.tune_batches));
  if (all.empty()) return Status::Failed("no schedule is valid for all features");
  ThreadPool& pool = *workload.pool;
  seconds_of(all[0], batches, pool);  // warms page tables
  std::vector<size_t> left(all.size());
  std::iota(left.begin(), left.end(), size_t{0});
  const auto keep = [&](size_t count, int64_t rounds) {
    std::vector<std::vector<double>> seconds(left.size());
    for (int64_t round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < left.size(); ++i)
        seconds[i].push_back(seconds_of(all[left[i]], batches, pool));
    }
    std::vector<double> medians;
    medians.reserve(seconds.size());
    for (const auto& of : seconds) medians.push_back(median(of));
    std::vector<size_t> kept;
    for (size_t i : least(medians, count)) kept.push_back(left[i]);
    left = std::move(kept);
  };
  keep(kFinalists, request.passes);
  keep(1, kFinalRounds);
  const SingleSchedule& best = all[left[0]];
  log_info(fmt::format(
      "{}: the best single schedule of {}{} is '{}', tile {}", workload.run.options.name,
      all.size(), request.or_default ? " or the default" : "", best.schedule.name(), best.tile));
  return best;
}

Result<TunedKernels> tune_here(const train::ResolvedRun& run, double budget_seconds, Files& files) {
  const TemporaryFolder folder;
  train::ResolvedRun here = run;
  here.options.kernels.record = folder.path() + "/record.json";
  train::TuningRequest request;
  request.seed = kTuneSeed;
  request.budget_seconds = budget_seconds;
  RECMILL_ASSIGN_OR_RETURN(auto made, train::tune(here, request, files));
  RECMILL_ASSIGN_OR_RETURN(auto kernels, kernels_from(made, run, "tuned in this run"));
  return TunedKernels{std::move(made), std::move(kernels)};
}

Result<TunedKernels> tuned_kernels(const train::ResolvedRun& run, double budget_seconds,
                                   Files& files) {
  const std::string path = train::tuning_record_path(run.options);
  auto record = train::read_tuning_record(path, files);
  if (record.ok()) {
    auto kernels = kernels_from(*record, run, path);
    if (kernels.ok()) {
      log_info(run.options.name + ": schedules of " + path);
      return TunedKernels{*std::move(record), *std::move(kernels)};
    }
    log_info(kernels.status().message());
  }
  log_info(run.options.name + ": no good record, tunes first");
  if (budget_seconds > 0.0) return tune_briefly(run, budget_seconds, files);
  return tune_here(run, 0.0, files);
}

Result<TunedKernels> separate_kernels(const KernelWorkload& workload, double budget_seconds) {
  RECMILL_ASSIGN_OR_RETURN(
      const auto subject,
      train::make_pool_subject(workload.run, workload.tables, workload.tune_batches));
  kernels::tune::TunerOptions options;
  // Who tunes a feature by itself knows nothing of what the features share: the whole cache is its.
  options.values = {{kernels::kWholeFeature, this_processor().l2_bytes}};
  options.budget_seconds = budget_seconds;
  options.alone = true;
  return chosen_for(workload.run, *subject, options, *workload.pool, "tuned alone");
}

}  // namespace recmill::bench
