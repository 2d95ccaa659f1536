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

TEST(GpuTemplates, WeighTheBlocksOfABatchAltogetherAsTheBatch) {
  const std::vector<int64_t> offsets{5, 8, 8, 705, 706};
  const JaggedView bags{offsets.data(), nullptr, nullptr, 4, false};
  const JaggedView one_each{nullptr, nullptr, nullptr, 4, true};
  const auto weights = [](const JaggedView& of, const GpuParts& parts) {
    std::vector<gpu::PoolBlock> blocks;
    map_gpu_blocks(of, parts, 0, blocks);
    std::vector<int64_t> found;
    for (const auto& block : blocks) found.push_back(weight_of(block, of, parts, 8));
    return found;
  };
  // Of a lookup an id of two floats and a row of eight, of a row of the output eight.
  EXPECT_EQ(weights(bags, {.samples = 3}), (std::vector<int64_t>{700 * 10 + 3 * 8, 10 + 8}));
  EXPECT_EQ(weights(bags, {.lookups = 512}), (std::vector<int64_t>{512 * 18, 189 * 18}));
  EXPECT_EQ(weights(bags, {.piece = 512}),
            (std::vector<int64_t>{3 * 10 + 8, 8, 512 * 10 + 8, 185 * 10 + 8, 10 + 8}));
  EXPECT_EQ(weights(one_each, {.samples = 3}), (std::vector<int64_t>{3 * 18, 18}));
}

TEST(GpuTemplates, HaveTheHeaviestBlocksOfABatchFirst) {
  std::vector<int64_t> weights{0, 9, 1000, 3, 1030, int64_t{1} << 40, 3, 1300, 0, 4000, 1000};
  std::vector<gpu::PoolBlock> blocks;
  for (size_t b = 0; b < weights.size(); ++b) blocks.push_back({static_cast<i32>(b), 0, 0, 1});
  put_heaviest_first([&](const gpu::PoolBlock& block) { return weights[block.feature]; }, blocks);
  std::vector<int32_t> order;
  for (const auto& block : blocks) order.push_back(block.feature);
  EXPECT_EQ(order, (std::vector<int32_t>{5, 9, 7, 4, 2, 10, 1, 3, 6, 0, 8}));
  std::vector<gpu::PoolBlock> none;
  put_heaviest_first([](const gpu::PoolBlock&) { return int64_t{1}; }, none);
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace recmill::kernels
