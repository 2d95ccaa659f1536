// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/temporary_folder.h"
#include "bench/kernels/kernels_cases.h"
#include "bench/kernels/schedules.h"
#include "bench/kernels/sides.h"
#include "device/processor.h"
#include "kernels/codegen/generated_pool.h"

namespace recmill::bench {
namespace {

using kernels::FusedPool;
using kernels::PoolKernel;
using kernels::codegen::Dispatch;
using kernels::codegen::GeneratedFeature;
using kernels::codegen::GeneratedPool;
using kernels::codegen::LibraryCache;
using kernels::tune::FamilyTuning;
using kernels::tune::PooledFeature;

std::vector<GeneratedFeature> generated_features(std::span<const PooledFeature> features,
                                                 std::span<const PoolKernel> kernels) {
  std::vector<GeneratedFeature> made;
  for (size_t f = 0; f < features.size(); ++f)
    made.push_back({features[f].rows, features[f].pooling, features[f].weighted, &kernels[f]});
  return made;
}

/// Different functions of all candidates that were right at the chosen value: the branches of one
/// kernel that decides at run time.
Result<int64_t> functions_of_all(const FamilyTuning& tuning,
                                 std::span<const PooledFeature> features) {
  std::set<std::string> names;
  for (const auto& value : tuning.times.values) {
    if (value.value != tuning.choice.value) continue;
    for (size_t c = 0; c < value.classes.size(); ++c) {
      const PooledFeature& feature = features[tuning.times.classes[c].features.front()];
      for (const auto& candidate : value.classes[c].candidates) {
        if (!candidate.refused.empty()) continue;
        RECMILL_ASSIGN_OR_RETURN(const PoolKernel kernel,
                                 kernels::find_pool_kernel(candidate.schedule));
        const GeneratedFeature of{feature.rows, feature.pooling, feature.weighted, &kernel};
        names.insert(kernels::codegen::pool_functions({&of, 1})[0].name());
      }
    }
  }
  return static_cast<int64_t>(names.size());
}

/// The pools write the same bits for a batch.
Status check_same(const FusedPool& a, const FusedPool& b, const PoolBatches& batches,
                  ThreadPool& pool) {
  run_fused(a, batches, 0, pool);
  std::vector<float> expected;
  for (int64_t i = 0; i < batches.samples(0); ++i)
    expected.insert(expected.end(), batches.output(i).begin(), batches.output(i).end());
  run_fused(b, batches, 0, pool);
  for (int64_t i = 0; i < batches.samples(0); ++i) {
    const auto row = batches.output(i);
    if (!std::equal(row.begin(), row.end(), expected.begin() + i * batches.columns()))
      return Status::Failed("generated code answers otherwise for sample " + std::to_string(i));
  }
  return {};
}

}  // namespace

Status run_generated_case(const std::string& name, const train::ResolvedRun& run,
                          const BenchOptions& options, const BenchSink& sink) {
  const KernelsBudget budget = kernels_budget(options);
  RECMILL_ASSIGN_OR_RETURN(const TunedKernels tuned,
                           tuned_kernels(run, budget.tuning_seconds, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(const KernelWorkload workload,
                           KernelWorkload::make(run, {0, budget.batches}, posix_files()));
  const auto features = workload.features();
  RECMILL_ASSIGN_OR_RETURN(const PoolBatches batches,
                           PoolBatches::make(features, workload.test_batches));
  const FusedPool fused(tuned.kernels.pool, tuned.kernels.tile);
  const auto generated = generated_features(features, tuned.kernels.pool);
  const TemporaryFolder folder;
  kernels::codegen::LibraryCacheOptions cached;
  cached.folder = folder.path();
  cached.processor = this_processor().name;
  LibraryCache cache(cached, posix_files());
  Sides sides;
  ThreadPool& pool = *workload.pool;
  const size_t ours = sides.add_ours(fused_contender(fused, batches, pool));
  double cold = 0.0;
  int64_t functions = 0;
  for (const Dispatch dispatch : {Dispatch::branches, Dispatch::pointers}) {
    kernels::codegen::PoolSourceOptions source;
    source.made_by = "bench kernels " + name;
    source.dispatch = dispatch;
    source.lanes = kernels::codegen::vector_lanes();
    const Stopwatch watch;
    RECMILL_ASSIGN_OR_RETURN(const auto code, GeneratedPool::make(generated, source, cache));
    if (dispatch == Dispatch::branches) {
      cold = watch.seconds();
      functions = code->functions();
    }
    FusedPool with_code = fused;
    with_code.use(code);
    RECMILL_RETURN_IF_ERROR(check_same(fused, with_code, batches, pool));
    sides.add_fused(dispatch == Dispatch::branches ? "generated_branches" : "generated_pointers",
                    std::move(with_code), batches, pool, ours);
  }
  RECMILL_RETURN_IF_ERROR(sides.run(batches.count(), budget, {}));
  sides.report(name, sink);
  RECMILL_ASSIGN_OR_RETURN(const int64_t all,
                           functions_of_all(*tuned.record.family("embedding_pool"), features));
  const auto say = [&](const char* metric, double value, const char* unit) {
    sink(sides.figure(name, ours, metric, value, unit));
  };
  say("generated_functions", static_cast<double>(functions), "");
  say("cold_compilation", cold, "s");
  say("functions_with_all_branches", static_cast<double>(all), "");
  say("cold_compilation_with_all_branches_at_the_same_rate",
      cold * static_cast<double>(all) / static_cast<double>(std::max<int64_t>(1, functions)), "s");
  return {};
}

}  // namespace recmill::bench
