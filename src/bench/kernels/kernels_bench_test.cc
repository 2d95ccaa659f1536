// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/kernels_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "base/temporary_folder.h"
#include "bench/kernels/feature_rivals.h"
#include "bench/kernels/gpu/gpu_cases.h"
#include "bench/kernels/gpu/unlike_batches.h"
#include "bench/kernels/mappings.h"
#include "bench/kernels/memory_limit.h"
#include "bench/kernels/mutation.h"
#include "bench/kernels/schedules.h"
#include "bench/kernels/static_cases.h"
#include "bench/kernels/workload.h"
#include "config/run_config.h"

namespace recmill::bench {
namespace {

using kernels::Schedule;
using kernels::tune::PooledFeature;
using testing::ElementsAre;

Schedule schedule(const char* text) {
  return *kernels::parse_schedule(text);
}

TEST(InAll, keeps_what_every_list_has_in_the_order_of_the_first) {
  const std::vector<std::vector<Schedule>> lists{
      {schedule("a x=1"), schedule("a x=2"), schedule("b")},
      {schedule("b"), schedule("c"), schedule("a x=1")}};
  EXPECT_THAT(in_all(lists), ElementsAre(schedule("a x=1"), schedule("b")));
  EXPECT_THAT(in_all({}), ElementsAre());
}

TEST(Least, is_the_first_among_equals) {
  EXPECT_THAT(least(std::vector{3.0, 1.0, 2.0, 1.0}, 3), ElementsAre(1, 3, 2));
  EXPECT_THAT(least(std::vector{3.0}, 3), ElementsAre(0));
}

TEST(Lengthen, makes_bags_longer_by_other_rows_of_the_same_table) {
  SparseFeature feature{{0, 1, 1, 3}, {5, 0, 99}, {}, false};
  lengthen(feature, 50, 100);
  EXPECT_THAT(feature.offsets, ElementsAre(0, 50, 50, 150));
  ASSERT_EQ(feature.rows.size(), 150u);
  EXPECT_EQ(feature.rows[0], 5);
  const std::set<int64_t> first(feature.rows.begin(), feature.rows.begin() + 50);
  EXPECT_EQ(first.size(), 50u);
  for (int64_t row : feature.rows) {
    EXPECT_GE(row, 0);
    EXPECT_LT(row, 100);
  }
}

TEST(KernelsCases, of_every_figure_are_there_and_quick_ones_are_some_of_them) {
  const auto all = kernels_cases(0, false);
  for (int64_t figure : {3, 9, 10, 11, 12, 13})
    EXPECT_FALSE(kernels_cases(figure, false).empty()) << figure;
  for (const std::string& name : kernels_cases(0, true)) EXPECT_THAT(all, testing::Contains(name));
  BenchOptions options;
  options.cases = {"recflex_a_sideways"};
  EXPECT_EQ(run_kernels_bench(options, [](const BenchLine&) {}).message(),
            "bench kernels: no case 'recflex_a_sideways'");
}

/// Two features of one id a sample, two of bags.
Result<train::ResolvedRun> tiny_run_on_the_emulator(const std::string& cache) {
  RECMILL_ASSIGN_OR_RETURN(auto config,
                           config::load_run_config("recflex_e", {"kernels.cache=" + cache}));
  train::WorkloadLine one, many;
  one.kind = many.kind = train::LineKind::fixed;
  one.count = many.count = 2;
  one.rows = many.rows = 64;
  one.dims = many.dims = {1};
  many.mean = 20;
  many.coverage = 0.5;
  config.options.device = DeviceKind::emulated;
  config.options.workload.lines = {one, many};
  config.options.tune.batch_sizes = {40};
  config.options.data.synthetic.planted.columns = 2;
  return train::resolve_run(config.options, posix_files());
}

TEST(GpuCase, on_the_emulator_counts_what_each_way_needs) {
  const TemporaryFolder folder;
  const auto run = tiny_run_on_the_emulator(folder.path());
  ASSERT_TRUE(run.ok()) << run.status().message();
  BenchOptions options;
  options.device = DeviceKind::emulated;
  std::map<std::string, double> found;
  const Status status = run_gpu_case("tiny_gpu", *run, options, [&](const BenchLine& line) {
    found[line.rival.empty() ? line.metric : "over_" + line.rival] =
        line.rival.empty() ? line.value : line.ratio.ratio;
  });
  ASSERT_TRUE(status.ok()) << status.message();
  for (const char* rival : {"torchrec_like", "hugectr_like", "untuned"})
    EXPECT_GT(found["over_" + std::string(rival)], 1.0) << rival;
  // The same schedules: only what finding them takes is another.
  EXPECT_NEAR(found.at("over_tuned_by_pointers"), 1.0, 0.25);
  EXPECT_NEAR(found.at("active_lanes_tuned_by_pointers"), found.at("active_lanes_tuned"), 4.0);
  EXPECT_GT(found["active_lanes_tuned"], found["active_lanes_torchrec_like"]);
  EXPECT_LE(found["active_lanes_tuned"], 32.0);
  EXPECT_EQ(found.at("warm_compilations_branches"), 0.0);
  EXPECT_EQ(found.at("spilled_branches"), 0.0);
  EXPECT_GT(found.at("registers_pointers"), 16.0);
  // Distinct rows in seven steps, updates, preprocessing, and four kernels of a training step.
  EXPECT_EQ(found.at("kernels_beside"), 13.0);
  EXPECT_EQ(found.at("spilled_beside"), 0.0);
  EXPECT_GT(found.at("occupancy_beside"), 0.1);
  EXPECT_GT(found.at("cold_compilation_beside"), 0.0);
  EXPECT_EQ(found.at("warm_compilations_beside"), 0.0);
  options.device = DeviceKind::cpu;
  options.cases = {"recflex_d_gpu"};
  EXPECT_EQ(run_kernels_bench(options, [](const BenchLine&) {}).message(),
            "bench kernels: case 'recflex_d_gpu' needs --device cuda or emulated");
}

TEST(GpuCase, has_every_mapping_on_batches_unlike_those_of_tuning) {
  const TemporaryFolder folder;
  const auto run = tiny_run_on_the_emulator(folder.path());
  ASSERT_TRUE(run.ok()) << run.status().message();
  BenchOptions options;
  options.device = DeviceKind::emulated;
  std::map<std::string, double> counted;
  std::vector<std::string> compared;
  const Status status = run_gpu_mapping_case("tiny", *run, options, [&](const BenchLine& line) {
    if (line.rival.empty()) return;
    counted[line.name] = line.value;
    compared.push_back(line.name + " " + line.rival);
  });
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<std::string> expected;
  for (const char* of : {"tiny", "tiny_2560", "tiny_heavy"})
    for (const char* rival : {"static_mean", "static_most", "static_heaviest_first"})
      expected.push_back(std::string(of) + " " + rival);
  EXPECT_EQ(compared, expected);
  EXPECT_GT(counted["tiny_2560"], 20 * counted["tiny"]);
  EXPECT_GT(counted["tiny_heavy"], 5 * counted["tiny"]);
}

TEST(Exchange, is_of_medians_and_tells_only_where_a_bad_choice_would_be_seen) {
  const std::vector<std::vector<double>> seconds{
      {1.0, 9.0, 1.02}, {1.0, 1.0, 1.0}, {1.4, 1.3, 0.1}};
  const Exchange exchange = exchange_of(seconds, 0);
  EXPECT_DOUBLE_EQ(exchange.regret(), 1.02 - 1.0);
  EXPECT_DOUBLE_EQ(exchange.worst, 1.3);
  EXPECT_EQ(exchange.best_place, 1u);
  EXPECT_EQ(exchange.worst_place, 2u);
  EXPECT_TRUE(exchange.can_tell());
  EXPECT_FALSE((Exchange{1.0, 1.0, 1.29}).can_tell());
}

TEST(Judgement, is_of_those_that_can_tell) {
  const Exchange good{1.01, 1.0, 2.0}, fair{1.04, 1.0, 2.0}, bad{1.06, 1.0, 2.0},
      silent{1.2, 1.0, 1.2};
  EXPECT_TRUE(judge(std::vector{good, good, fair, silent}).holds());
  EXPECT_EQ(judge(std::vector{good, good, fair, silent}).told, 3);
  EXPECT_FALSE(judge(std::vector{good, fair, fair}).holds());
  EXPECT_FALSE(judge(std::vector{good, good, bad}).holds());
  EXPECT_FALSE(judge(std::vector{silent}).holds());
  EXPECT_EQ(judge({}).told, 0);
}

TEST(Combinations, are_all_with_the_last_place_fastest) {
  EXPECT_THAT(combinations(2, 2), ElementsAre(ElementsAre(0, 0), ElementsAre(0, 1),
                                              ElementsAre(1, 0), ElementsAre(1, 1)));
  EXPECT_EQ(combinations(3, 4).size(), 64u);
}

/// Two features on tables of four rows, two batches of 3 and 2 samples.
struct TwoFeatures {
  std::vector<float> rows;
  std::vector<PooledFeature> features;
  std::vector<SparseBatch> batches;

  TwoFeatures() {
    for (int64_t i = 0; i < 4 * 16; ++i) rows.push_back(static_cast<float>(i));
    for (int64_t dim : {16, 4})
      features.push_back({kernels::RowStorage::of(rows.data(), 4, dim), Pooling::sum, false});
    batches.push_back({0,
                       3,
                       {{{0, 2, 2, 3}, {0, 1, 3}, {}, false}, {{0, 1, 2, 3}, {3, 2, 1}, {}, false}},
                       nullptr});
    batches.push_back(
        {3,
         2,
         {{{0, 0, 1}, {2}, {}, false}, {{0, 8, 8}, {0, 1, 2, 3, 0, 1, 2, 3}, {}, false}},
         nullptr});
  }
};

TEST(PoolBatches, are_pooled_side_by_side_and_compared_with_a_tolerance) {
  const TwoFeatures two;
  const auto batches = PoolBatches::make(two.features, two.batches);
  ASSERT_TRUE(batches.ok());
  EXPECT_EQ(batches->columns(), 20);
  const kernels::FusedPool fused(std::vector<kernels::PoolKernel>(2));
  ThreadPool pool(2);
  run_fused(fused, *batches, 0, pool);
  EXPECT_EQ(batches->output(0)[1], 1.0f + 17.0f);
  EXPECT_EQ(batches->output(1)[1], 0.0f);
  EXPECT_EQ(batches->output(2)[16], 4.0f);
  std::vector<float> rival;
  for (int64_t i = 0; i < 3; ++i)
    rival.insert(rival.end(), batches->output(i).begin(), batches->output(i).end());
  EXPECT_TRUE(check_outputs(*batches, 0, rival).ok());
  rival[7] += 0.01f;
  EXPECT_FALSE(check_outputs(*batches, 0, rival).ok());
  EXPECT_FALSE(check_outputs(*batches, 1, rival).ok());  // another size
}

/// The number of batches of a workload of one feature on a table of dimension 1,024: of test, tune.
std::pair<size_t, size_t> batches_of(int64_t samples, const WorkloadSizes& sizes) {
  train::RunOptions settings = config::load_run_config("recflex_e", {})->options;
  settings.tune.batch_sizes = {samples};
  settings.workload.lines.resize(1);
  settings.workload.lines[0] = {.mean = 16, .rows = 100, .dims = {1024}};
  settings.data.synthetic.planted.columns = 1;
  const auto run = train::resolve_run(settings, posix_files());
  EXPECT_TRUE(run.ok()) << run.status().message();
  const auto made = KernelWorkload::make(*run, sizes, posix_files());
  EXPECT_TRUE(made.ok()) << made.status().message();
  return {made->test_batches.size(), made->tune_batches.size()};
}

TEST(KernelWorkload, of_small_batches_has_more_of_them_so_that_a_pass_fills_caches) {
  using Numbers = std::pair<size_t, size_t>;
  EXPECT_EQ(batches_of(1, {}), Numbers(256, 256));  // at most
  EXPECT_EQ(batches_of(256, {}), Numbers(16, 16));  // of 16 MiB and their ids
  EXPECT_EQ(batches_of(1024, {}), Numbers(8, 8));   // as asked for
  EXPECT_EQ(batches_of(256, {.test_samples = {2, 2, 2}}), Numbers(3, 16));
}

TEST(RunTimed, gives_the_answer_of_a_run_and_times_what_is_asked_for) {
  const TwoFeatures two;
  const auto batches = PoolBatches::make(two.features, two.batches);
  ASSERT_TRUE(batches.ok());
  const kernels::FusedPool fused(std::vector<kernels::PoolKernel>(2), 1);
  ThreadPool pool(2);
  run_fused(fused, *batches, 0, pool);
  const std::vector<float> expected(batches->output(0).begin(), batches->output(0).end());
  run_fused(fused, *batches, 1, pool);
  kernels::TaskMap map;
  fused.map(batches->tasks(0), 2, map);
  double seconds = 0.0;
  const int64_t timed = 1;
  run_timed(fused, batches->tasks(0), map, {&timed, 1}, pool, {&seconds, 1});
  EXPECT_GT(seconds, 0.0);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), batches->output(0).begin()));
}

TEST(StaticMapping, expects_the_mean_or_the_most_of_the_tuned_batches) {
  const TwoFeatures two;
  const auto batches = PoolBatches::make(two.features, two.batches);
  ASSERT_TRUE(batches.ok());
  std::vector<kernels::PoolKernel> kernels(2);
  for (auto& kernel : kernels) kernel.per_lookup = kernel.per_sample = 1.0;
  const kernels::FusedPool fused(kernels);
  // Costs by batch: 6, 6 and 3, 10: the mean 4.5, 8 and the most 6, 10.
  EXPECT_THAT(static_mapping(fused, *batches, Expected::mean, 2).cuts[1].share,
              testing::DoubleEq((12.5 / 2 - 4.5) / 8));
  EXPECT_THAT(static_mapping(fused, *batches, Expected::most, 2).cuts[1].share,
              testing::DoubleEq((16.0 / 2 - 6) / 10));
  EXPECT_THAT(even_mapping(3, 2).cuts[1], (kernels::FixedCut{1, 0.5}));
}

TEST(MemoryLimit, counts_every_line_that_is_named_once) {
  const TwoFeatures two;
  const auto batches = PoolBatches::make(two.features, two.batches);
  ASSERT_TRUE(batches.ok());
  std::vector<float> table(64 * 8);
  const std::vector<int64_t> offsets{0, 3, 3, 4}, ids{0, 1, 5, 1};  // two rows of 32 bytes a line
  kernels::PoolTask task;
  task.bags = {offsets.data(), ids.data(), nullptr, 3, false};
  task.rows = kernels::RowStorage::of(table.data(), 64, 8);
  EXPECT_EQ(traffic_of({&task, 1}), (PoolTraffic{4 * 8 + 4 * 8 + 2 * 64, 3 * 8 * 4, 2 * 64}));
  ThreadPool pool(2);
  const auto limit = memory_limit(*batches, pool);
  ASSERT_TRUE(limit.ok());
  const int64_t order[] = {1, 0, 1};
  const auto seconds = (*limit)(order);
  ASSERT_TRUE(seconds.ok());
  EXPECT_GT(*seconds, 0.0);
}

}  // namespace
}  // namespace recmill::bench
