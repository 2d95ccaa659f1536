// SPDX-License-Identifier: Apache-2.0
// What tuning itself costs, and what little time for it costs.
#include <sys/resource.h>

#include "base/clock.h"
#include "bench/kernels/kernels_cases.h"
#include "bench/kernels/schedules.h"
#include "bench/kernels/sides.h"

namespace recmill::bench {
namespace {

using kernels::FusedPool;

constexpr double kShortSeconds = 60.0;

/// The most memory that this process has had, in GiB.
double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

}  // namespace

Status run_tuning_case(const std::string& name, const train::ResolvedRun& run,
                       const BenchOptions& options, const BenchSink& sink) {
  const KernelsBudget budget = kernels_budget(options);
  const Stopwatch watch;
  RECMILL_ASSIGN_OR_RETURN(const TunedKernels full, tune_here(run, 0.0, posix_files()));
  const double seconds = watch.seconds(), peak = peak_gib();
  const Stopwatch brief_watch;
  RECMILL_ASSIGN_OR_RETURN(const TunedKernels brief, tune_here(run, kShortSeconds, posix_files()));
  const double brief_seconds = brief_watch.seconds();
  RECMILL_ASSIGN_OR_RETURN(const KernelWorkload workload,
                           KernelWorkload::make(run, {}, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(const PoolBatches batches,
                           PoolBatches::make(workload.features(), workload.test_batches));
  const FusedPool fused(full.kernels.pool, full.kernels.tile);
  Sides sides;
  const size_t ours = sides.add_ours(fused_contender(fused, batches, *workload.pool));
  sides.add_fused("tuned_in_60_s", FusedPool(brief.kernels.pool, brief.kernels.tile), batches,
                  *workload.pool, ours);
  RECMILL_RETURN_IF_ERROR(sides.run(batches.count(), budget, {}));
  sides.report(name, sink);
  sink(sides.figure(name, ours, "tuning_time", seconds, "s"));
  sink(sides.figure(name, ours, "tuning_time_of_60_s", brief_seconds, "s"));
  sink(sides.figure(name, ours, "tuning_peak_memory", peak, "GiB"));
  return {};
}

}  // namespace recmill::bench
