// SPDX-License-Identifier: Apache-2.0
#include "comm/subtree_sums.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace recmill {
namespace {

constexpr uint64_t kSeed = 5;
constexpr int64_t kElements = 1000;

std::vector<float> sum_of_slice(int slice) {
  const Random random(kSeed, Purpose::test, static_cast<uint64_t>(slice));
  std::vector<float> values(kElements);
  for (size_t i = 0; i < values.size(); ++i) values[i] = random.uniform(i) - 0.3f;
  return values;
}

// The tree over all slices of `own`, each a part of its own, inside a whole of `slices`.
std::vector<float> plain(SliceRange own, int slices) {
  std::vector<std::vector<float>> sums;
  std::vector<SlicePart<float>> parts;
  for (int s = own.begin; s < own.end; ++s) sums.push_back(sum_of_slice(s));
  for (int s = own.begin; s < own.end; ++s) {
    parts.push_back({{s, s + 1}, sums[static_cast<size_t>(s - own.begin)].data()});
  }
  std::vector<float> total(kElements);
  tree_sum<float>({0, slices}, parts, total);
  return total;
}

TEST(SubtreeSums, have_the_bits_of_the_tree_in_any_order_of_slices) {
  for (const auto& [own, slices] : {std::pair{SliceRange{0, 1}, 1},
                                    {SliceRange{0, 2}, 2},
                                    {SliceRange{0, 8}, 8},
                                    {SliceRange{4, 8}, 8},
                                    {SliceRange{2, 5}, 8},
                                    {SliceRange{5, 16}, 16}}) {
    const auto expected = plain(own, slices);
    SubtreeSums sums(own, kElements);
    for (uint64_t order = 0; order < 20; ++order) {
      std::vector<int> shuffled;
      for (int s = own.begin; s < own.end; ++s) shuffled.push_back(s);
      const Random random(kSeed, Purpose::shuffle, order);
      std::sort(shuffled.begin(), shuffled.end(), [&](int a, int b) {
        return random.bits64(static_cast<uint64_t>(a)) < random.bits64(static_cast<uint64_t>(b));
      });
      sums.reset();
      for (int s : shuffled) {
        float* to = *sums.take();
        std::ranges::copy(sum_of_slice(s), to);
        sums.put(s, to);
      }
      std::vector<float> total(kElements);
      tree_sum<float>({0, slices}, sums.parts(), total);
      ASSERT_EQ(total, expected) << "order " << order << ", seed " << kSeed;
    }
  }
}

TEST(SubtreeSums, have_the_bits_of_the_tree_on_several_threads) {
  const auto expected = plain({0, 8}, 8);
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    SubtreeSums sums({0, 8}, kElements);
    for (int round = 0; round < 50; ++round) {
      sums.reset();
      pool.run(8, [&](int64_t s) {
        float* to = *sums.take();
        std::ranges::copy(sum_of_slice(static_cast<int>(s)), to);
        sums.put(static_cast<int>(s), to);
      });
      std::vector<float> total(kElements);
      tree_sum<float>({0, 8}, sums.parts(), total, pool);
      ASSERT_EQ(total, expected) << threads << " threads";
    }
  }
}

TEST(SubtreeSums, that_find_no_memory_say_what_it_was_for) {
  SubtreeSums sums({0, 2}, int64_t{1} << 50);
  const auto vector = sums.take();
  ASSERT_FALSE(vector.ok());
  EXPECT_EQ(vector.status().message().find("dense gradients of a slice: cannot allocate "), 0u)
      << vector.status().message();
}

}  // namespace
}  // namespace recmill
