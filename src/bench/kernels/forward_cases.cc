// SPDX-License-Identifier: Apache-2.0
// Forward passes of a workload's test batches: tuned and fused, against every rival.
#include <algorithm>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "bench/kernels/feature_rivals.h"
#include "bench/kernels/kernels_cases.h"
#include "bench/kernels/mappings.h"
#include "bench/kernels/memory_limit.h"
#include "bench/kernels/schedules.h"
#include "bench/kernels/sides.h"
#include "bench/kernels/static_cases.h"
#include "kernels/tune/tuner.h"
#include "run/tuning_data.h"

namespace recmill::bench {
namespace {

using kernels::FusedPool;

struct Ours {
  size_t all_threads, one_thread;  // places among the sides
};

/// FBGEMM and PyTorch, whose answers are compared first.
Status add_rivals(FeatureRivals& rivals, bool inference, const FusedPool& fused,
                  const PoolBatches& batches, ThreadPool& pool, const Ours& ours, Sides& sides) {
  std::vector<std::string> systems{"fbgemm_tbe", "torch_embeddingbag"};
  if (inference) systems.push_back("fbgemm_inference");
  for (const std::string& system : systems) {
    run_fused(fused, batches, 0, pool);
    RECMILL_ASSIGN_OR_RETURN(const auto answer, rivals.lookup(system, 0));
    RECMILL_RETURN_IF_ERROR(check_outputs(batches, 0, answer));
    sides.add(system, rivals.contender(system, pool.threads()), ours.all_threads);
    if (system != "torch_embeddingbag")
      sides.add(system + "_1t", rivals.contender(system, 1), ours.one_thread);
  }
  return {};
}

/// The workload's own executor in other settings: those of RecFlex's ablations and of systems that
/// it compares with.
Status add_baselines(const KernelWorkload& workload, const FusedPool& tuned, int64_t tile,
                     const SingleSchedule& single, const PoolBatches& tuned_on,
                     const PoolBatches& batches, const KernelsBudget& budget, size_t ours,
                     Sides& sides) {
  const auto features = workload.features();
  const std::vector<kernels::PoolKernel> one(single.fused.kernels().begin(),
                                             single.fused.kernels().end());
  ThreadPool& pool = *workload.pool;
  const auto stages_or_single = [&](const kernels::Schedule& schedule) {
    return stages(schedule) || schedule == single.schedule;
  };
  RECMILL_ASSIGN_OR_RETURN(
      SingleSchedule or_default,
      best_single(workload, {budget.single_passes, stages_or_single, /*or_default=*/true}));
  sides.add_fused("best_single_or_default", std::move(or_default.fused), batches, pool, ours);
  add_static(tuned, tile, tuned_on, batches, pool, ours, sides);
  sides.add_fused("recom_like",
                  FusedPool(one, single.tile, even_mapping(features.size(), pool.threads())),
                  batches, pool, ours);
  const int64_t dim = features[0].rows.dim;
  if (std::all_of(features.begin(), features.end(),
                  [&](const auto& feature) { return feature.rows.dim == dim; })) {
    // A table would be read for each block of samples: a schedule that does not stage.
    RECMILL_ASSIGN_OR_RETURN(
        const SingleSchedule plain,
        best_single(workload, {budget.single_passes, [](const kernels::Schedule& schedule) {
                                 return !stages(schedule);
                               }}));
    sides.add_fused("hugectr_like",
                    FusedPool({plain.fused.kernels().begin(), plain.fused.kernels().end()},
                              kernels::kWholeFeature, sample_block_mapping()),
                    batches, pool, ours);
  }
  RECMILL_ASSIGN_OR_RETURN(const auto separate,
                           separate_kernels(workload, budget.separate_seconds));
  sides.add_fused("separate_combine", FusedPool(separate.kernels.pool, separate.kernels.tile),
                  batches, pool, ours);
  return {};
}

/// What the tune batches are predicted to take: the tasks of the chosen schedules, timed one by one
/// beside interference.
Result<Contender> predicted_contender(const KernelWorkload& workload,
                                      const kernels::tune::TuningRecord& record) {
  RECMILL_ASSIGN_OR_RETURN(
      std::shared_ptr<kernels::tune::PoolSubject> subject,
      train::make_pool_subject(workload.run, workload.tables, workload.tune_batches));
  const auto& family = *record.family("embedding_pool");
  subject->set_classes(family.times.classes);
  return Contender([subject, choice = family.choice,
                    &pool = *workload.pool](std::span<const int64_t> order) -> Result<double> {
    const std::atomic<bool> never{false};
    RECMILL_ASSIGN_OR_RETURN(
        const double nanoseconds,
        kernels::tune::measure_tasks(*subject, choice, SteadyClock(), pool, never));
    return nanoseconds * 1e-9 / pool.threads() * static_cast<double>(order.size());
  });
}

}  // namespace

Status run_forward_case(const std::string& name, const train::ResolvedRun& run,
                        const BenchOptions& options, const BenchSink& sink) {
  const KernelsBudget budget = kernels_budget(options);
  RECMILL_ASSIGN_OR_RETURN(const TunedKernels tuned,
                           tuned_kernels(run, budget.tuning_seconds, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(
      const KernelWorkload workload,
      KernelWorkload::make(run, {budget.batches, budget.batches}, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(const SingleSchedule single,
                           best_single(workload, {budget.single_passes}));
  RECMILL_ASSIGN_OR_RETURN(const PoolBatches batches,
                           PoolBatches::make(workload.features(), workload.test_batches));
  const FusedPool fused(tuned.kernels.pool, tuned.kernels.tile);
  ThreadPool& pool = *workload.pool;
  ThreadPool one(1);
  Sides sides;
  MappingTime mapping;
  const size_t ours = sides.add_ours(fused_contender(fused, batches, pool, &mapping));
  const size_t ours_1t = sides.add_ours(fused_contender(fused, batches, one));
  RECMILL_ASSIGN_OR_RETURN(const PoolBatches tuned_on,
                           PoolBatches::make(workload.features(), workload.tune_batches));
  const size_t on_tuned = sides.add_ours(fused_contender(fused, tuned_on, pool));
  RECMILL_ASSIGN_OR_RETURN(Contender tasks, predicted_contender(workload, tuned.record));
  const size_t predicted = sides.add_ours(std::move(tasks));
  RECMILL_ASSIGN_OR_RETURN(Contender streams, memory_limit(batches, pool));
  const size_t limit = sides.add_ours(std::move(streams));
  sides.add("best_single", fused_contender(single.fused, batches, pool), ours);
  if (budget.baselines)
    RECMILL_RETURN_IF_ERROR(add_baselines(workload, fused, tuned.kernels.tile, single, tuned_on,
                                          batches, budget, ours, sides));
  std::optional<FeatureRivals> rivals;
  std::vector<pid_t> own;
  if (options.rivals) {
    RECMILL_ASSIGN_OR_RETURN(
        auto started, FeatureRivals::start(workload, options, {.inference = budget.baselines}));
    rivals.emplace(std::move(started));
    own = {rivals->pid()};
    RECMILL_RETURN_IF_ERROR(
        add_rivals(*rivals, budget.baselines, fused, batches, pool, {ours, ours_1t}, sides));
  }
  RECMILL_RETURN_IF_ERROR(sides.run(batches.count(), budget, own));
  sides.report(name, sink);

  BenchLine line = sides.line(name, ours);
  line.limit = sides.seconds(limit) * 1e3;
  line.of_limit = sides.seconds(limit) / sides.seconds(ours);
  sink(line);
  sink(sides.figure(name, ours, "share_of_limit_without_reuse",
                    line.of_limit * without_reuse(batches), ""));
  sink(sides.figure(name, on_tuned, "predicted_time_over_measured",
                    sides.seconds(predicted) / sides.seconds(on_tuned), ""));
  sink(sides.figure(name, ours, "counting_and_mapping_of_reading",
                    100.0 * mapping.of_batch() / workload.reading_seconds, "%"));
  return {};
}

}  // namespace recmill::bench
