// SPDX-License-Identifier: Apache-2.0
// Distinct rows by kernels for GPUs: what the reference gives, rows ascending; on the emulator in
// every order of threads.
#include <gtest/gtest.h>

#include "device/gpu/testing/test_gpu.h"
#include "kernels/codegen/testing/gpu_distinct_run.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels::codegen {
namespace {

class GpuDistinct : public ::testing::TestWithParam<RowKeys> {
 protected:
  static GpuDistinctRun run_in(const emulation::Turns& turns) {
    return GpuDistinctRun(gpu_distinct_sample(GetParam()), GetParam(), turns);
  }
  /// One table, of one feature whose bags have one lookup each.
  static DistinctCase of_rows(int64_t table_rows, std::vector<int64_t> rows) {
    SparseFeature bags;
    for (size_t i = 0; i <= rows.size(); ++i) bags.offsets.push_back(static_cast<int64_t>(i));
    bags.rows = std::move(rows);
    return {table_rows, {{bags}}};
  }
};

TEST_P(GpuDistinct, EqualsTheReferenceInEveryOrder) {
  std::vector<emulation::Turns> all{{emulation::Order::forward}, {emulation::Order::reverse}};
  for (uint64_t seed = 1; seed <= 3; ++seed) all.push_back({emulation::Order::random, seed});
  for (const emulation::Turns& turns : all) {
    auto run = run_in(turns);
    EXPECT_EQ(run.difference(random_distinct_cases(GetParam(), 300, 5, turns.seed), 0, 4), "")
        << "order " << static_cast<int>(turns.order) << ", seed " << turns.seed;
  }
}

// Lanes without a lookup wait for nobody there: a barrier keeps a row's later lookup from being
// counted before its earlier one.
TEST_P(GpuDistinct, KeepsTheOrderOfARowsLookupsWhereTheLastAreNoWholeWarps) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    auto run = run_in({emulation::Order::random, seed});
    EXPECT_EQ(run.difference(std::vector{distinct_case_of_two_warps()}, 0, 1), "")
        << "seed " << seed;
  }
}

TEST_P(GpuDistinct, TakesBatchesOfAnySizeInTheSameMemory) {
  auto run = run_in({});
  for (const int64_t samples : {700, 0, 1, 2, 31, 257})
    for (const int slices : {1, 8})
      EXPECT_EQ(run.difference(random_distinct_cases(GetParam(), samples, 3, 7), 2, slices), "")
          << samples << " samples, " << slices << " slices";
}

TEST_P(GpuDistinct, OneRowMayBeLookedUpByAllAndManyByNobody) {
  auto run = run_in({});
  const int64_t rows = int64_t{1} << (GetParam() == RowKeys::wide ? 40 : 32);
  EXPECT_EQ(run.difference(std::vector{of_rows(rows, std::vector<int64_t>(10000, rows - 1))}, 0, 8),
            "");
  std::vector<int64_t> descending;
  for (int64_t i = 0; i < 5000; ++i) descending.push_back(rows - 1 - i);
  EXPECT_EQ(run.difference(std::vector{of_rows(rows, descending)}, 0, 1), "");
  const std::vector<int64_t> ends{0, rows - 1, 0, rows - 1, rows / 2};
  EXPECT_EQ(run.difference(std::vector{of_rows(1, {0, 0}), of_rows(rows - 1, {rows - 2, 0})}, 0, 1),
            "");
  EXPECT_EQ(run.difference(std::vector{of_rows(rows, ends)}, 0, 2), "");
}

TEST_P(GpuDistinct, ABagMayHaveAThousandsLookupsOfOneRow) {
  const SparseFeature bags = random_bags({20, 2000, 50, true, 2}, 3);
  const DistinctCase table{50, {{bags, Pooling::mean}, {bags, Pooling::none}}};
  auto run = run_in({emulation::Order::reverse});
  EXPECT_EQ(run.difference(std::vector{table}, 0, 4), "");
}

TEST(GpuDistinctRowsFinder, RefusesMoreLookupsThanItsNumbersHold) {
  Gpu gpu(recmill::testing::test_driver(), {});
  const GpuDistinctRowsFinder finder(gpu, std::vector<GpuKernel>(kDistinctSteps.size()),
                                     RowKeys::narrow);
  GpuTableLookups table{10, {{}}};
  table.features[0].host.bags = {nullptr, nullptr, nullptr, int64_t{1} << 31, /*one_each=*/true};
  GpuLookups batch;
  EXPECT_EQ(finder.stage({&table, 1}, batch).message(),
            "a batch of 2147483648 lookups, of which a GPU takes at most 2147483647");
}

TEST(RowKeys, AreWideWhereTablesTogetherHaveMoreRowsThan32BitsName) {
  const int64_t half = int64_t{1} << 31;
  EXPECT_EQ(row_keys(std::vector{half, half}), RowKeys::narrow);
  EXPECT_EQ(row_keys(std::vector{half, half, int64_t{1}}), RowKeys::wide);
}

INSTANTIATE_TEST_SUITE_P(Keys, GpuDistinct, ::testing::Values(RowKeys::narrow, RowKeys::wide),
                         [](const auto& info) {
                           return info.param == RowKeys::wide ? "wide" : "narrow";
                         });

}  // namespace
}  // namespace recmill::kernels::codegen
