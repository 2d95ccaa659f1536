// SPDX-License-Identifier: Apache-2.0
#include "run/gpu/gpu_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/json/json.h"
#include "base/temporary_folder.h"
#include "comm/threads.h"
#include "device/gpu/emulated_driver.h"
#include "device/gpu/gpu_properties.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "kernels/tune/gpu_pool_subject.h"
#include "kernels/tune/gpu_tuner.h"
#include "run/generated_code.h"
#include "run/gpu/gpu_sources.h"
#include "run/rank.h"
#include "run/testing/bags_run.h"
#include "run/tuning_data.h"
#include "tuning/gpu_tuning.h"

namespace recmill::train {
namespace {

TEST(GpuKernels, are_summed_up_by_what_each_takes) {
  GpuKernelsReport report;
  report.gpu = *gpu_of_architecture("sm_90");
  report.schedules = 3;
  report.fused = {{{"fused", 40, 16, 3000}, 8, 256, 4, 3}};
  report.beside = {{{"row_update", 96, 0, 50}, 0, 128, 5}};
  report.candidate_kernels = {{{"one", 30, 0, 5000}, 4, 256, 2, 9}};
  report.of_training = {2, 1.5};
  report.in_all = {4, 3.0};
  const Json summary = summary_of(report);
  EXPECT_EQ(summary["distinct_schedules"], 3);
  EXPECT_EQ(summary["fused"],
            Json::parse(
                R"([{"kernel": "fused", "registers": 40, "stack": 16, "spilled": 8,
                                              "shared": 3000, "blocks": 4, "occupancy": 0.5, "schedules": 3}])"));
  EXPECT_EQ(summary["beside"],
            Json::parse(R"([{"kernel": "row_update", "registers": 96, "stack": 0, "spilled": 0,
                             "shared": 50, "blocks": 5, "occupancy": 0.3125}])"));
  EXPECT_EQ(summary["training"], Json::parse(R"({"compiled": 2, "seconds": 1.5})"));
  EXPECT_EQ(summary["compiled"], 4);
  EXPECT_EQ(summary["candidate_kernels"],
            Json::parse(R"([{"kernel": "one", "registers": 30, "stack": 0, "spilled": 4,
                             "shared": 5000, "blocks": 2, "occupancy": 0.25, "schedules": 9}])"));
}

/// What tuning on a GPU has compiled; it is not compiled here.
std::vector<kernels::codegen::GpuSource> tuning_asks_for(const ResolvedRun& run, ThreadPool& pool) {
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
  ThreadPool pool(1);
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

TEST(GpuKernels, of_a_record_for_the_architecture_have_its_schedules) {
  const TemporaryFolder folder;
  RunOptions options = bags_run(500);
  options.workload.lines.pop_back();
  options.device = DeviceKind::emulated;
  options.kernels.cache = folder.path();
  options.kernels.record = folder.path() + "/record.json";
  const auto run = resolve_run(options, posix_files());
  ASSERT_TRUE(run.ok()) << run.status().message();
  auto record = tune_for_gpu(*run, {}, posix_files());
  ASSERT_TRUE(record.ok()) << record.status().message();
  const auto compile = [&](KernelMode mode) {
    ResolvedRun wanted = *run;
    wanted.options.kernels.mode = mode;
    auto report = compile_gpu_kernels(wanted, {}, posix_files());
    EXPECT_TRUE(report.ok()) << report.status().message();
    return *std::move(report);
  };
  const auto untuned = compile(KernelMode::standard), foreign = compile(KernelMode::tuned);
  EXPECT_EQ(foreign.record, "");  // it is of the emulator
  EXPECT_EQ(foreign.in_all.compiled, 0);
  record->of.compiler = "sm_90";
  ASSERT_TRUE(
      write_atomically(posix_files(), options.kernels.record, *kernels::tune::record_text(*record))
          .ok());
  const auto tuned = compile(KernelMode::tuned);
  EXPECT_EQ(tuned.record, options.kernels.record);
  EXPECT_GT(tuned.of_training.compiled, 0);
  ASSERT_EQ(tuned.fused.size(), 1u);
  EXPECT_NE(tuned.fused[0].resources.name, untuned.fused[0].resources.name);
  // Tuning compares with the default schedules, which training does not load then.
  EXPECT_EQ(tuned.candidate_kernels.size(), untuned.candidate_kernels.size() + 1);
}

/// The folders of what has been compiled there.
int64_t compiled_in(const std::string& folder) {
  const auto names = posix_files().list(folder);
  EXPECT_TRUE(names.ok()) << names.status().message();
  return std::ranges::count_if(
      *names, [](const std::string& name) { return name.find('.') == std::string::npos; });
}

/// Fails as make_rank().
Status make_ranks(const ResolvedRun& run) {
  return run_ranks(run.ranks, [&](Communicator& communicator) -> Status {
    ThreadPool pool(1);
    return make_rank(run, Way::engine, communicator, pool, posix_files()).status();
  });
}

/// Of each table so many rows at most.
std::shared_ptr<const HotSet> first_rows_hot(const ModelSpec& model, int64_t most) {
  auto set = std::make_shared<HotSet>();
  for (const TableSpec& spec : model.tables) {
    HotTable& table = set->tables.emplace_back();
    table.table = spec.name;
    table.rows = spec.rows;
    for (int64_t row = 0; row < std::min(most, spec.rows); ++row) table.hot_rows.push_back(row);
  }
  return set;
}

TEST(GpuKernels, compiled_beforehand_are_those_that_ranks_load) {
  const TemporaryFolder folder;
  RunOptions options = bags_run(500);
  options.device = DeviceKind::emulated;
  options.kernels.cache = folder.path();
  std::set<std::string> texts;  // of all runs so far
  const auto check = [&](size_t more, int64_t hot = 0) {
    auto run = resolve_run(options, posix_files());
    ASSERT_TRUE(run.ok()) << run.status().message();
    if (hot > 0) run->hot_set = first_rows_hot(run->spec, hot);
    const Status made = make_ranks(*run);
    ASSERT_TRUE(made.ok()) << made.message();
    const auto sources = gpu_sources(*run, {});
    ASSERT_TRUE(sources.ok()) << sources.status().message();
    std::vector<kernels::codegen::GpuSource> all(sources->lookups.begin(), sources->lookups.end());
    for (const LaunchedSource& other : sources->others) all.push_back(other.source);
    const size_t before = texts.size();
    for (const auto& source : all) texts.insert(source.text);
    EXPECT_EQ(texts.size(), before + more);
    EXPECT_EQ(compiled_in(folder.path()), std::ssize(texts));
    auto cache = library_cache(run->options.kernels, posix_files());
    ASSERT_TRUE(kernels::codegen::emulated_code(all, *cache).ok());
    EXPECT_EQ(cache->compilations(), 0);
  };
  options.train.slices = 2;
  options.train.deterministic = true;
  check(3);  // lookups, distinct rows, updates
  options.train.deterministic = false;
  options.gpu.preprocess = true;
  check(2);
  options.train.ranks = 2;
  check(3);  // lookups and updates of the rank with one kind of tables, rows between ranks
  options.gpu.rows = GpuRowsIn::hot;
  check(0, 1000);  // all of each table
  check(5, 10);    // lookups and updates of both ranks, near rows
}

}  // namespace
}  // namespace recmill::train
