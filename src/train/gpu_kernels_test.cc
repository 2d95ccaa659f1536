// SPDX-License-Identifier: Apache-2.0
#include "train/gpu_kernels.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "device/gpu/emulated_driver.h"
#include "device/gpu/gpu_properties.h"
#include "kernels/codegen/gpu_code.h"
#include "kernels/tune/gpu_pool_subject.h"
#include "kernels/tune/gpu_tuner.h"
#include "train/generated_code.h"
#include "train/testing/bags_run.h"
#include "train/tuning_data.h"

namespace recmill::train {
namespace {

TEST(GpuKernels, are_summed_up_by_what_each_and_the_greediest_take) {
  GpuKernelsReport report;
  report.gpu = *gpu_of_architecture("sm_90");
  report.fused = {{3, 2, {"fused", 40, 16, 3000}, 8, 4}};
  report.candidate_kernels = {{9, 2, {"one", 30, 0, 5000}, 4, 6},
                              {9, 2, {"other", 60, 0, 70}, 0, 3}};
  const Json summary = summary_of(report);
  EXPECT_EQ(summary["distinct_schedules"], 3);
  EXPECT_EQ(summary["fused"],
            Json::parse(R"([{"schedules": 3, "registers": 40, "stack": 16, "spilled": 8,
                                              "shared": 3000, "blocks": 4, "occupancy": 0.5}])"));
  EXPECT_EQ(summary["by_blocks"][1],
            Json::parse(R"({"blocks": 2, "registers": 60, "spilled": 4, "shared": 5000})"));
}

/// What tuning on a GPU has compiled; it is not compiled here.
std::vector<kernels::codegen::GpuSource> tuning_asks_for(const ResolvedRun& run, Pool& pool) {
  using namespace kernels::codegen;
  Gpu gpu(*make_emulated_driver({}), {});
  const auto data = TuningData::make(run, {}, pool, posix_files());
  EXPECT_TRUE(data.ok()) << data.status().message();
  std::vector<kernels::tune::GpuPooledRows> features;
  for (const FeatureSpec& feature : run.spec.features)
    features.push_back(
        {data->tables[feature.table].rows(), nullptr, feature.pooling, feature.weighted});
  std::vector<GpuSource> sources;
  kernels::tune::GpuPoolSubjectOptions options;
  options.deterministic = run.options.train.deterministic;
  options.compile = [&](std::span<const GpuSource> wanted) -> Result<std::vector<GpuCode>> {
    sources.assign(wanted.begin(), wanted.end());
    return Status::Failed("not compiled");
  };
  auto subject = kernels::tune::GpuPoolSubject::make(gpu, features, data->batches, options, pool);
  EXPECT_TRUE(subject.ok()) << subject.status().message();
  const auto blocks = kernels::tune::gpu_occupancies(gpu.properties());
  EXPECT_EQ((*subject)->compile_candidates(blocks).message(), "not compiled");
  return sources;
}

TEST(GpuKernels, compiled_beforehand_are_those_that_tuning_asks_for) {
  const TemporaryFolder folder;
  RunOptions options = bags_run(500);
  options.workload.lines.pop_back();  // bags, whose many candidates take minutes
  options.kernels.cache = folder.path();
  Pool pool(1);
  for (const bool deterministic : {true, false}) {
    options.train.deterministic = deterministic;
    const auto run = resolve_run(options, posix_files());
    ASSERT_TRUE(run.ok()) << run.status().message();
    const auto compiled = compile_gpu_kernels(*run, {}, posix_files());
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    const auto sources = tuning_asks_for(*run, pool);
    EXPECT_GT(sources.size(), 3u);
    const auto libraries = library_cache(run->options.kernels, posix_files());
    auto cache = kernels::codegen::CubinCache::open(libraries->folder(), posix_files());
    ASSERT_TRUE(cache.ok()) << cache.status().message();
    ASSERT_TRUE(cache->load(sources, "sm_90", pool).ok());
    EXPECT_EQ(cache->compilations(), 0);
  }
}

}  // namespace
}  // namespace recmill::train
