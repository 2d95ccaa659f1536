// SPDX-License-Identifier: Apache-2.0
#include "train/gpu_lookups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/testing/bags_run.h"

namespace recmill::train {
namespace {

TEST(GpuLookups, DoNotTakeMoreMemoryThanTheRunCountsOn) {
  RunOptions options = bags_run(100);
  options.device = DeviceKind::emulated;
  options.gpu.memory_gib = 1e-6;
  const auto run = resolve_run(options, posix_files());
  ASSERT_TRUE(run.ok()) << run.status().message();
  Pool pool(1);
  const auto lookups = GpuLookups::make(*run, {.least = 1, .most = 1}, pool, posix_files());
  ASSERT_FALSE(lookups.ok());
  EXPECT_THAT(lookups.status().message(),
              ::testing::StartsWith("gpu.rows = \"device\": the run takes 0.0 MiB of the GPU's "
                                    "memory, of which gpu.memory_gib leaves it 0.0 MiB; largest: "
                                    "table "));
}

}  // namespace
}  // namespace recmill::train
