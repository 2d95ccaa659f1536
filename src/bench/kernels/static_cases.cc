// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/static_cases.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "bench/kernels/gpu/unlike_batches.h"
#include "bench/kernels/mappings.h"
#include "bench/kernels/schedules.h"

namespace recmill::bench {
namespace {

using kernels::FusedPool;

constexpr size_t kPlantedFeatures = 16;
constexpr int64_t kPlantedBytes = int64_t{20} << 20;  // of a table

int64_t rows_of_planted(int64_t dim) {
  return kPlantedBytes / (dim * int64_t{sizeof(float)});
}

train::RunOptions planted(train::RunOptions settings, const char* name,
                          std::vector<train::WorkloadLine> lines, int64_t batch_size) {
  settings.name = name;
  settings.workload.lines = std::move(lines);
  settings.tune.batch_sizes = {batch_size};
  settings.data.synthetic.planted.columns = 8;
  return settings;
}

/// The most expensive feature of the batches that were tuned on.
size_t heaviest(const FusedPool& fused, const PoolBatches& tuned_on) {
  std::vector<double> costs(fused.kernels().size(), 0.0);
  for (int64_t batch = 0; batch < tuned_on.count(); ++batch) {
    const auto work = fused.work(tuned_on.tasks(batch));
    for (size_t f = 0; f < costs.size(); ++f) costs[f] += work[f].cost();
  }
  return std::max_element(costs.begin(), costs.end()) - costs.begin();
}

Status run_static(const std::string& name, const train::ResolvedRun& run,
                  const WorkloadSizes& sizes, bool heavy, const BenchOptions& options,
                  const BenchSink& sink) {
  const KernelsBudget budget = kernels_budget(options);
  RECMILL_ASSIGN_OR_RETURN(const TunedKernels tuned,
                           tuned_kernels(run, budget.tuning_seconds, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(KernelWorkload workload,
                           KernelWorkload::make(run, sizes, posix_files()));
  const auto features = workload.features();
  RECMILL_ASSIGN_OR_RETURN(const PoolBatches tuned_on,
                           PoolBatches::make(features, workload.tune_batches));
  const FusedPool fused(tuned.kernels.pool, tuned.kernels.tile);
  if (heavy) {
    const size_t feature = heaviest(fused, tuned_on);
    for (SparseBatch& batch : workload.test_batches)
      lengthen(batch.features[feature], kHeavyFactor, features[feature].rows.count);
  }
  RECMILL_ASSIGN_OR_RETURN(const PoolBatches batches,
                           PoolBatches::make(features, workload.test_batches));
  Sides sides;
  const size_t ours = sides.add_ours(fused_contender(fused, batches, *workload.pool));
  add_static(fused, tuned.kernels.tile, tuned_on, batches, *workload.pool, ours, sides);
  RECMILL_RETURN_IF_ERROR(sides.run(batches.count(), budget, {}));
  sides.report(name, sink);
  return {};
}

}  // namespace

void add_static(const FusedPool& fused, int64_t tile, const PoolBatches& tuned_on,
                const PoolBatches& batches, ThreadPool& pool, size_t ours, Sides& sides) {
  const std::vector<kernels::PoolKernel> chosen(fused.kernels().begin(), fused.kernels().end());
  for (const Expected expected : {Expected::mean, Expected::most})
    sides.add_fused(
        expected == Expected::mean ? "static_mean" : "static_max",
        FusedPool(chosen, tile, static_mapping(fused, tuned_on, expected, pool.threads())), batches,
        pool, ours);
}

Status run_static_case(const std::string& name, const train::ResolvedRun& run,
                       const BenchOptions& options, const BenchSink& sink) {
  return run_static(name, run, {}, false, options, sink);
}

Status run_large_batch_case(const std::string& name, const train::ResolvedRun& run,
                            const BenchOptions& options, const BenchSink& sink) {
  WorkloadSizes sizes;
  sizes.test_samples.assign(kLargeBatches, kLargeBatch);
  return run_static(name, run, sizes, false, options, sink);
}

Status run_heavy_feature_case(const std::string& name, const train::ResolvedRun& run,
                              const BenchOptions& options, const BenchSink& sink) {
  return run_static(name, run, {}, true, options, sink);
}

Status run_separate_case(const std::string& name, const train::ResolvedRun& run,
                         const BenchOptions& options, const BenchSink& sink) {
  const KernelsBudget budget = kernels_budget(options);
  RECMILL_ASSIGN_OR_RETURN(const TunedKernels tuned,
                           tuned_kernels(run, budget.tuning_seconds, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(const KernelWorkload workload,
                           KernelWorkload::make(run, {}, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(const PoolBatches batches,
                           PoolBatches::make(workload.features(), workload.test_batches));
  RECMILL_ASSIGN_OR_RETURN(const auto separate,
                           separate_kernels(workload, budget.separate_seconds));
  const FusedPool fused(tuned.kernels.pool, tuned.kernels.tile);
  Sides sides;
  const size_t ours = sides.add_ours(fused_contender(fused, batches, *workload.pool));
  sides.add_fused("separate_combine", FusedPool(separate.kernels.pool, separate.kernels.tile),
                  batches, *workload.pool, ours);
  RECMILL_RETURN_IF_ERROR(sides.run(batches.count(), budget, {}));
  sides.report(name, sink);
  return {};
}

train::RunOptions planted_llc(train::RunOptions settings) {
  constexpr int64_t kDim = 16;
  std::vector<train::WorkloadLine> lines(kPlantedFeatures);
  for (size_t f = 0; f < lines.size(); ++f) {
    lines[f].rows = rows_of_planted(kDim) - static_cast<int64_t>(f);  // a class of its own
    lines[f].dims = {kDim};
  }
  return planted(std::move(settings), "planted_llc", std::move(lines), 16384);
}

train::RunOptions planted_llc_bags(train::RunOptions settings) {
  std::vector<train::WorkloadLine> lines;
  for (const int64_t dim : {8, 16, 32, 64}) {
    for (const double mean : {10.0, 20.0, 40.0, 80.0}) {
      train::WorkloadLine line;
      line.kind = train::LineKind::normal;
      line.mean = mean;
      line.deviation = mean / 4;
      line.longest = std::llround(mean * 2);
      line.rows = rows_of_planted(dim);
      line.dims = {dim};
      lines.push_back(line);
    }
  }
  return planted(std::move(settings), "planted_llc_bags", std::move(lines), 512);
}

}  // namespace recmill::bench
