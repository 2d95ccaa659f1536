// SPDX-License-Identifier: Apache-2.0
// Fused kernels for GPUs: what the reference gives; on the emulator in every order of threads.
#include <gtest/gtest.h>

#include "kernels/codegen/testing/gpu_pool_run.h"
#include "kernels/codegen/testing/gpu_samples.h"

namespace recmill::kernels::codegen {
namespace {

class GpuPool : public ::testing::TestWithParam<GpuSample> {
 protected:
  static std::string run(int64_t samples, uint64_t seed, const emulation::Turns& turns) {
    const GpuSample& sample = GetParam();
    return difference_from_reference(source_of(sample), gpu_sample_entry(sample.name),
                                     {samples, sample.longest, seed, turns});
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

INSTANTIATE_TEST_SUITE_P(Samples, GpuPool, ::testing::ValuesIn(gpu_samples()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace recmill::kernels::codegen
