// SPDX-License-Identifier: Apache-2.0
// Fused kernels for GPUs: what the reference gives; on the emulator in every order of threads.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "device/gpu/testing/test_gpu.h"
#include "kernels/codegen/testing/gpu_pool_run.h"
#include "kernels/codegen/testing/gpu_samples.h"
#include "kernels/embedding_pool/gpu_fused_pool.h"

namespace recmill::kernels::codegen {
namespace {

class GpuPool : public ::testing::TestWithParam<GpuSample> {
 protected:
  static std::string run(int64_t samples, uint64_t seed, const emulation::Turns& turns) {
    const GpuSample& sample = GetParam();
    return difference_from_reference(source_of(sample), gpu_sample_entry(sample.name),
                                     {samples, sample.longest, seed, sample.options.timed, turns});
  }
};

TEST_P(GpuPool, EqualsTheReferenceInEveryOrder) {
  EXPECT_EQ(run(70, 1, {emulation::Order::forward}), "");
  EXPECT_EQ(run(70, 2, {emulation::Order::reverse}), "");
  for (uint64_t seed = 1; seed <= 3; ++seed)
    EXPECT_EQ(run(40, seed, {emulation::Order::random, seed}), "") << "seed " << seed;
}

TEST_P(GpuPool, TakesBatchesOfAnySize) {
  for (const int64_t samples : {0, 1, 2, 31, 257}) EXPECT_EQ(run(samples, 3, {}), "") << samples;
}

TEST(GpuFusedPool, RefusesBagsWithWeightsThatItsKernelDoesNotExpectAndWithout) {
  Gpu gpu(recmill::testing::test_driver(), {});
  const GpuFusedPool pool(gpu, {}, {{.weighted = true}});
  const GpuFusedPool plain(gpu, {}, {{.weighted = false, .name = "C4"}});
  const std::array<int64_t, 2> offsets{0, 1}, rows{0, 0};
  const float weight = 2;
  ThreadPool threads(1);
  GpuBags batch;
  const auto said = [&](const GpuFusedPool& of, const float* weights) {
    const JaggedView bags{offsets.data(), rows.data(), weights, 1, /*one_each=*/true};
    return of.stage({&bags, 1}, threads, batch).message();
  };
  EXPECT_EQ(said(pool, nullptr), "feature number 0 has no weights: its kernel reads them");
  EXPECT_EQ(said(plain, &weight), "feature 'C4' has weights: its kernel reads none");
}

TEST(GpuFusedPool, SaysThatABatchIsLargerThanPinnedMemory) {
  if (recmill::testing::on_cuda()) GTEST_SKIP() << "that of a machine may have more";
  Gpu gpu(recmill::testing::test_driver({.pinned_memory = 1000}), {});
  const GpuFusedPool pool(gpu, std::vector<GpuPoolLaunched>(1),
                          {{.name = "C4", .chosen = {.parts = {.samples = 8}}}});
  std::vector<int64_t> offsets, rows(200);
  for (int64_t i = 0; i <= std::ssize(rows); ++i) offsets.push_back(i);
  ThreadPool threads(1);
  GpuBags batch;
  const JaggedView bags{offsets.data(), rows.data(), nullptr, std::ssize(rows), /*one_each=*/true};
  // In pieces of 256 bytes the feature's arguments, 25 blocks, 201 offsets and 200 lookups, and a
  // quarter more.
  EXPECT_EQ(pool.stage({&bags, 1}, threads, batch).message(),
            "bags of a batch: pinned memory of 5440 bytes: the host has no more");
}

INSTANTIATE_TEST_SUITE_P(Samples, GpuPool, ::testing::ValuesIn(gpu_samples()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace recmill::kernels::codegen
