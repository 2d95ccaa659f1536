// SPDX-License-Identifier: Apache-2.0
#include "comm/slice_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace recmill {
namespace {

constexpr int kSliceCounts[] = {1, 2, 4, 8, 16};

// The definition, word for word; null: the slice is absent.
float plain_tree(const std::vector<const float*>& slices, int begin, int end) {
  if (end - begin == 1) return slices[begin] == nullptr ? 0.0f : *slices[begin];
  const int middle = (begin + end) / 2;
  return plain_tree(slices, begin, middle) + plain_tree(slices, middle, end);
}

// Values of very different sizes, so that another order of summation gives other bits; some zeros.
float value(uint64_t slice, uint64_t element) {
  const Random random(11, Purpose::test, slice);
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

TEST(Subtrees, of_three_ranks_and_eight_slices_are_as_on_paper) {
  EXPECT_EQ(subtrees(slices_of_rank(0, 3, 8)), (std::vector<SliceRange>{{0, 2}}));
  EXPECT_EQ(subtrees(slices_of_rank(1, 3, 8)), (std::vector<SliceRange>{{2, 4}, {4, 5}}));
  EXPECT_EQ(subtrees(slices_of_rank(2, 3, 8)), (std::vector<SliceRange>{{5, 6}, {6, 8}}));
}

TEST(TreeSum, is_the_balanced_tree_for_every_presence_of_parts_and_absent_equals_zero) {
  ThreadPool pool(2);
  for (int slices : kSliceCounts) {
    for (uint32_t mask = 0; mask < (1u << slices); mask += slices == 16 ? 257 : 1) {
      std::vector<float> values;
      for (int slice = 0; slice < slices; ++slice) {
        values.push_back((mask >> slice) & 1 ? value(slice, mask) : 0.0f);
      }
      std::vector<const float*> leaves(slices, nullptr);
      std::vector<SlicePart<float>> present, with_zeros;
      for (int slice = 0; slice < slices; ++slice) {
        if ((mask >> slice) & 1) {
          leaves[slice] = &values[slice];
          present.push_back({{slice, slice + 1}, &values[slice]});
        }
        with_zeros.push_back({{slice, slice + 1}, &values[slice]});
      }
      const uint32_t expected = std::bit_cast<uint32_t>(plain_tree(leaves, 0, slices));
      float sum = -1;
      tree_sum<float>({0, slices}, present, {&sum, 1});
      EXPECT_EQ(std::bit_cast<uint32_t>(sum), expected) << slices << " slices, mask " << mask;
      tree_sum<float>({0, slices}, with_zeros, {&sum, 1}, pool);
      EXPECT_EQ(std::bit_cast<uint32_t>(sum), expected) << slices << " slices, mask " << mask;
    }
  }
}

TEST(TreeSum, of_the_ranks_subtrees_is_the_tree_of_the_slices_at_every_number_of_ranks) {
  for (int slices : kSliceCounts) {
    std::vector<double> values;
    std::vector<SlicePart<double>> leaves;
    for (int slice = 0; slice < slices; ++slice) values.push_back(value(slice, 0) / 3.0);
    for (int slice = 0; slice < slices; ++slice)
      leaves.push_back({{slice, slice + 1}, &values[slice]});
    double expected = -1;
    tree_sum<double>({0, slices}, leaves, {&expected, 1});
    for (int ranks = 1; ranks <= slices; ++ranks) {
      std::vector<double> sums(2 * slices);
      std::vector<SlicePart<double>> sent;
      for (int rank = 0; rank < ranks; ++rank) {
        for (SliceRange tree : subtrees(slices_of_rank(rank, ranks, slices))) {
          double& sum = sums[sent.size()];
          tree_sum<double>(tree, std::span(leaves).subspan(tree.begin, tree.size()), {&sum, 1});
          sent.push_back({tree, &sum});
        }
      }
      double total = -1;
      tree_sum<double>({0, slices}, sent, {&total, 1});
      EXPECT_EQ(std::bit_cast<uint64_t>(total), std::bit_cast<uint64_t>(expected))
          << slices << " slices, " << ranks << " ranks";
    }
  }
}

TEST(TreeSum, gives_the_same_bits_at_every_length_and_number_of_threads_also_in_place) {
  constexpr int kSlices = 8;
  for (int64_t elements : {0, 1, 4095, 4096, 4097, 9000}) {
    std::vector<std::vector<float>> values(kSlices, std::vector<float>(elements));
    std::vector<float> expected(elements);
    std::vector<SlicePart<float>> parts;
    for (int slice = 0; slice < kSlices; ++slice) {
      for (int64_t i = 0; i < elements; ++i) values[slice][i] = value(slice, i);
      parts.push_back({{slice, slice + 1}, values[slice].data()});
    }
    for (int64_t i = 0; i < elements; ++i) {
      std::vector<const float*> leaves;
      for (auto& slice : values) leaves.push_back(&slice[i]);
      expected[i] = plain_tree(leaves, 0, kSlices);
    }
    for (int64_t first : {int64_t{0}, elements / 3, elements}) {
      std::vector<float> rest(elements - first, -1.0f);
      tree_sum<float>({0, kSlices}, parts, rest, first);
      EXPECT_EQ(rest, std::vector<float>(expected.begin() + first, expected.end()));
    }
    for (int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      std::vector<float> sum(elements, -1.0f);
      tree_sum<float>({0, kSlices}, parts, sum, pool);
      EXPECT_EQ(sum, expected);
      std::vector<float> first = values[0];
      auto in_place = parts;
      in_place[0].data = first.data();
      tree_sum<float>({0, kSlices}, in_place, first, pool);
      EXPECT_EQ(first, expected);
    }
  }
}

}  // namespace
}  // namespace recmill
