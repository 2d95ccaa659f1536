// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/gpu_properties.h"

#include <gtest/gtest.h>

namespace recmill {
namespace {

TEST(GpuProperties, KnowsArchitectures) {
  EXPECT_EQ(gpu_of_architecture("sm_90")->sms, 132);
  EXPECT_EQ(gpu_of_architecture("sm_80")->compute, 80);
  EXPECT_EQ(gpu_of_architecture("sm_100")->shared_of_block, 227 << 10);
  EXPECT_EQ(gpu_of_architecture("sm_20").status().message(),
            "architecture 'sm_20' is none of sm_80, sm_86, sm_89, sm_90, sm_100");
}

// What CUDA's occupancy calculator gives for an H100.
TEST(GpuProperties, CountsBlocksOfAnSm) {
  // An A10's holds 48 warps, in 16 blocks at most.
  EXPECT_EQ(blocks_per_sm(*gpu_of_architecture("sm_86"), {"kernel", 16, 0, 0}, 256, 0), 6);
  EXPECT_EQ(blocks_per_sm(*gpu_of_architecture("sm_86"), {"kernel", 16, 0, 0}, 32, 0), 16);

  const GpuProperties h100 = *gpu_of_architecture("sm_90");
  const auto blocks = [&](int registers, int64_t shared, int64_t dynamic) {
    return blocks_per_sm(h100, {"kernel", registers, 0, shared}, 256, dynamic);
  };
  EXPECT_EQ(blocks(32, 0, 0), 8);
  EXPECT_EQ(blocks(40, 0, 0), 6);
  EXPECT_EQ(blocks(56, 0, 0), 4);
  EXPECT_EQ(blocks(64, 0, 0), 4);
  EXPECT_EQ(blocks(92, 0, 0), 2);
  EXPECT_EQ(blocks(32, 0, 40 << 10), 5);
  EXPECT_EQ(blocks(32, 20 << 10, 20 << 10), 5);
  EXPECT_EQ(blocks(255, 0, 227 << 10), 1);
  EXPECT_EQ(blocks(32, 1, 227 << 10), 0);
  EXPECT_EQ(blocks_per_sm(h100, {"kernel", 16, 0, 0}, 32, 0), 32);
  EXPECT_EQ(blocks_per_sm(h100, {"kernel", 65, 0, 0}, 1024, 0), 0);
}

}  // namespace
}  // namespace recmill
