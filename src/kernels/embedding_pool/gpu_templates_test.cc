// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/gpu_templates.h"

#include <gtest/gtest.h>

#include <map>

#include "kernels/embedding_pool/embedding_pool.h"

namespace recmill::kernels {
namespace {

static_assert(gpu::kRun == kPoolRun);

FeatureShape shape_of(int64_t dim, bool one_each, Pooling pooling = Pooling::sum) {
  FeatureShape shape;
  shape.rows = 1000;
  shape.dim = dim;
  shape.pooling = pooling;
  if (!one_each) shape.bags = {20, 5, 0.1, 50};
  return shape;
}

std::map<std::string, size_t> counts(const FeatureShape& shape, bool deterministic) {
  std::map<std::string, size_t> by_template;
  for (const Schedule& schedule : gpu_pool_candidates(shape, deterministic))
    ++by_template[schedule.of];
  return by_template;
}

// RecFlex's artifact: 3, 4, 5, 6, 7 and 8 candidates of features with one lookup each, 132, 156,
// 152, 144, 108 and 96 of others.
TEST(GpuTemplates, HaveAsManyCandidatesAsRecFlex) {
  const std::vector<int64_t> dims{4, 8, 16, 32, 64, 128};
  const std::vector<size_t> one_each{3, 4, 5, 6, 7, 8}, of_key{12, 16, 20, 24, 0, 0},
      of_block{116, 128, 108, 84, 60, 36}, of_threads{4, 12, 24, 36, 48, 60},
      all{132, 156, 152, 144, 108, 96};
  for (size_t d = 0; d < dims.size(); ++d) {
    EXPECT_EQ(gpu_pool_candidates(shape_of(dims[d], true), false).size(), one_each[d]);
    EXPECT_EQ(gpu_pool_candidates(shape_of(dims[d], true), true).size(), one_each[d]);
    auto found = counts(shape_of(dims[d], false), false);
    EXPECT_EQ(found["reduce_by_key"], of_key[d]);
    EXPECT_EQ(found["samples_per_block"] + found["split_samples_per_block"], of_block[d]);
    EXPECT_EQ(found["threads_per_sample"], of_threads[d]);
    EXPECT_EQ(gpu_pool_candidates(shape_of(dims[d], false), false).size(), all[d]);
    // In order: all but the scan, whose threads add across bags.
    found = counts(shape_of(dims[d], false), true);
    EXPECT_EQ(found["samples_per_block"], of_block[d]);
    EXPECT_EQ(found["threads_per_sample"], of_threads[d]);
    EXPECT_EQ(gpu_pool_candidates(shape_of(dims[d], false), true).size(), all[d] - of_key[d]);
  }
}

TEST(GpuTemplates, HaveCandidatesAndADefaultForEveryShape) {
  for (const int64_t dim : {1, 2, 3, 5, 7, 12, 17, 31, 50, 100, 200, 1000, 1024}) {
    for (const Pooling pooling : {Pooling::sum, Pooling::mean, Pooling::none}) {
      for (const bool one_each : {false, true}) {
        for (const bool deterministic : {false, true})
          EXPECT_FALSE(gpu_pool_candidates(shape_of(dim, one_each, pooling), deterministic).empty())
              << dim << " " << name_of(pooling) << " " << one_each;
      }
      for (const int64_t state : {0, 2, 4, 16}) {
        RowStorage rows = RowStorage::of(nullptr, 10, dim);
        rows.precision = RowPrecision::float16;
        rows.stride = dim * 2 + state;
        const auto kernel = find_gpu_pool_kernel(default_gpu_pool_schedule(pooling, rows));
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        EXPECT_EQ(kernel->of->order, Order::contract);
        EXPECT_EQ(dim % kernel->of->lanes(kernel->values), 0);
        EXPECT_EQ(rows.stride % (2 * kernel->of->lanes(kernel->values)), 0);
      }
    }
  }
}

TEST(GpuTemplates, HaveSeveralBlocksForABagWhereBagsAreLong) {
  FeatureShape shape = shape_of(32, false);
  EXPECT_EQ(counts(shape, true)["blocks_per_sample"], 0u);
  shape.bags.longest = 5000;
  EXPECT_GT(counts(shape, true)["blocks_per_sample"], 0u);
}

TEST(GpuTemplates, MapEveryPartOfABatchOnce) {
  const std::vector<int64_t> offsets{0, 3, 3, 700, 701};
  const JaggedView bags{offsets.data(), nullptr, nullptr, 4, false};
  std::vector<gpu::PoolBlock> blocks;
  map_gpu_blocks(bags, {.samples = 3}, 7, blocks);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[1].feature, 7);
  EXPECT_EQ(blocks[1].part, 1);
  blocks.clear();
  map_gpu_blocks(bags, {.lookups = 256}, 0, blocks);
  EXPECT_EQ(blocks.size(), 3u);
  blocks.clear();
  map_gpu_blocks(bags, {.piece = 128}, 0, blocks);  // an empty bag has a block too
  ASSERT_EQ(blocks.size(), 9u);
  EXPECT_EQ(blocks[1].part, 1);
  EXPECT_EQ(blocks[7].part, 2);
  EXPECT_EQ(blocks[7].piece, 5);
  EXPECT_EQ(blocks[7].pieces, 6);
}

}  // namespace
}  // namespace recmill::kernels
