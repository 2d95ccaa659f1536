// SPDX-License-Identifier: Apache-2.0
#include "bench/cached/gpu_cached_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace recmill::bench {
namespace {

TEST(GpuCachedBench, FindsTheSameRowsInEveryWayAndSaysThatItsTimesAreEmulated) {
  BenchOptions options;
  options.device = DeviceKind::emulated;
  options.scale = 5e-4;
  options.pairs = 1;
  std::vector<BenchLine> lines;
  const Status status =
      run_gpu_cached_bench(options, [&](const BenchLine& line) { lines.push_back(line); });
  ASSERT_TRUE(status.ok()) << status.message();
  std::string rivals;
  for (const BenchLine& line : lines) {
    EXPECT_EQ(line.device, "emulated");
    EXPECT_THAT(line.metric, ::testing::StartsWith("emulated_"));
    EXPECT_GT(line.value, 0) << line.metric;
    if (!line.rival.empty()) rivals += line.rival + " ";
  }
  EXPECT_EQ(rivals, "fit host device ");
}

}  // namespace
}  // namespace recmill::bench
