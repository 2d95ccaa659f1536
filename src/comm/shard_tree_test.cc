// SPDX-License-Identifier: Apache-2.0
#include "comm/shard_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace recmill {
namespace {

constexpr int kShardCounts[] = {1, 2, 4, 8, 16};

// The definition, word for word; null: the shard is absent.
float plain_tree(const std::vector<const float*>& shards, int begin, int end) {
  if (end - begin == 1) return shards[begin] == nullptr ? 0.0f : *shards[begin];
  const int middle = (begin + end) / 2;
  return plain_tree(shards, begin, middle) + plain_tree(shards, middle, end);
}

// Values of very different sizes, so that another order of summation gives other bits; some zeros.
float value(uint64_t shard, uint64_t element) {
  const Random random(11, Purpose::test, shard);
  const auto words = random.block(element);
  if (words[0] % 8 == 0) return 0.0f;
  return std::ldexp(Random::unit(words[1]) - 0.5f, static_cast<int>(words[2] % 40));
}

TEST(Subtrees, are_the_fewest_aligned_pieces_of_every_range) {
  for (int begin = 0; begin <= 32; ++begin) {
    for (int end = begin; end <= 32; ++end) {
      const auto pieces = subtrees({begin, end});
      int next = begin;
      for (size_t i = 0; i < pieces.size(); ++i) {
        EXPECT_EQ(pieces[i].begin, next);
        EXPECT_TRUE(is_subtree(pieces[i])) << pieces[i].begin << " " << pieces[i].end;
        next = pieces[i].end;
        // Maximal: the parent of a piece reaches outside the range.
        const int size = 2 * pieces[i].size();
        const int parent = pieces[i].begin / size * size;
        EXPECT_TRUE(parent < begin || parent + size > end) << "[" << begin << ", " << end << ")";
      }
      EXPECT_EQ(next, end);
    }
  }
}

TEST(Subtrees, of_three_ranks_and_eight_shards_are_as_on_paper) {
  EXPECT_EQ(subtrees(shards_of_rank(0, 3, 8)), (std::vector<ShardRange>{{0, 2}}));
  EXPECT_EQ(subtrees(shards_of_rank(1, 3, 8)), (std::vector<ShardRange>{{2, 4}, {4, 5}}));
  EXPECT_EQ(subtrees(shards_of_rank(2, 3, 8)), (std::vector<ShardRange>{{5, 6}, {6, 8}}));
}

TEST(TreeSum, is_the_balanced_tree_for_every_presence_of_parts_and_absent_equals_zero) {
  Pool pool(2);
  for (int shards : kShardCounts) {
    for (uint32_t mask = 0; mask < (1u << shards); mask += shards == 16 ? 257 : 1) {
      std::vector<float> values;
      for (int shard = 0; shard < shards; ++shard) {
        values.push_back((mask >> shard) & 1 ? value(shard, mask) : 0.0f);
      }
      std::vector<const float*> leaves(shards, nullptr);
      std::vector<ShardPart<float>> present, with_zeros;
      for (int shard = 0; shard < shards; ++shard) {
        if ((mask >> shard) & 1) {
          leaves[shard] = &values[shard];
          present.push_back({{shard, shard + 1}, &values[shard]});
        }
        with_zeros.push_back({{shard, shard + 1}, &values[shard]});
      }
      const uint32_t expected = std::bit_cast<uint32_t>(plain_tree(leaves, 0, shards));
      float sum = -1;
      tree_sum<float>({0, shards}, present, {&sum, 1});
      EXPECT_EQ(std::bit_cast<uint32_t>(sum), expected) << shards << " shards, mask " << mask;
      tree_sum<float>({0, shards}, with_zeros, {&sum, 1}, pool);
      EXPECT_EQ(std::bit_cast<uint32_t>(sum), expected) << shards << " shards, mask " << mask;
    }
  }
}

TEST(TreeSum, of_the_ranks_subtrees_is_the_tree_of_the_shards_at_every_number_of_ranks) {
  for (int shards : kShardCounts) {
    std::vector<double> values;
    std::vector<ShardPart<double>> leaves;
    for (int shard = 0; shard < shards; ++shard) values.push_back(value(shard, 0) / 3.0);
    for (int shard = 0; shard < shards; ++shard)
      leaves.push_back({{shard, shard + 1}, &values[shard]});
    double expected = -1;
    tree_sum<double>({0, shards}, leaves, {&expected, 1});
    for (int ranks = 1; ranks <= shards; ++ranks) {
      std::vector<double> sums(2 * shards);
      std::vector<ShardPart<double>> sent;
      for (int rank = 0; rank < ranks; ++rank) {
        for (ShardRange tree : subtrees(shards_of_rank(rank, ranks, shards))) {
          double& sum = sums[sent.size()];
          tree_sum<double>(tree, std::span(leaves).subspan(tree.begin, tree.size()), {&sum, 1});
          sent.push_back({tree, &sum});
        }
      }
      double total = -1;
      tree_sum<double>({0, shards}, sent, {&total, 1});
      EXPECT_EQ(std::bit_cast<uint64_t>(total), std::bit_cast<uint64_t>(expected))
          << shards << " shards, " << ranks << " ranks";
    }
  }
}

TEST(TreeSum, gives_the_same_bits_at_every_length_and_number_of_threads_also_in_place) {
  constexpr int kShards = 8;
  for (int64_t elements : {0, 1, 4095, 4096, 4097, 9000}) {
    std::vector<std::vector<float>> values(kShards, std::vector<float>(elements));
    std::vector<float> expected(elements);
    std::vector<ShardPart<float>> parts;
    for (int shard = 0; shard < kShards; ++shard) {
      for (int64_t i = 0; i < elements; ++i) values[shard][i] = value(shard, i);
      parts.push_back({{shard, shard + 1}, values[shard].data()});
    }
    for (int64_t i = 0; i < elements; ++i) {
      std::vector<const float*> leaves;
      for (auto& shard : values) leaves.push_back(&shard[i]);
      expected[i] = plain_tree(leaves, 0, kShards);
    }
    for (int64_t first : {int64_t{0}, elements / 3, elements}) {
      std::vector<float> rest(elements - first, -1.0f);
      tree_sum<float>({0, kShards}, parts, rest, first);
      EXPECT_EQ(rest, std::vector<float>(expected.begin() + first, expected.end()));
    }
    for (int threads : {1, 2, 3}) {
      Pool pool(threads);
      std::vector<float> sum(elements, -1.0f);
      tree_sum<float>({0, kShards}, parts, sum, pool);
      EXPECT_EQ(sum, expected);
      std::vector<float> first = values[0];
      auto in_place = parts;
      in_place[0].data = first.data();
      tree_sum<float>({0, kShards}, in_place, first, pool);
      EXPECT_EQ(first, expected);
    }
  }
}

}  // namespace
}  // namespace recmill
