// SPDX-License-Identifier: Apache-2.0
#include "kernels/row_update/gradient_sums.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/testing/instruction_sets.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// One table, several features, and gradients for all of their outputs.
struct TestTable {
  std::vector<SparseFeature> features;
  std::vector<FeatureBags> bags;
  std::vector<std::vector<float>> values;
  std::vector<GradientRows> gradients;
  DistinctRows distinct;
  int64_t dim;

  TestTable(int64_t samples, int slices, int64_t dim, bool scaled, int64_t longest = 3) : dim(dim) {
    const Pooling poolings[] = {scaled ? Pooling::mean : Pooling::sum, Pooling::none, Pooling::sum};
    for (int f = 0; f < 3; ++f)
      features.push_back(random_bags({samples, longest, 40, scaled && f != 1, 3}, 77 + f));
    for (int f = 0; f < 3; ++f) {
      bags.push_back({features[f].view(samples), poolings[f]});
      values.push_back(
          random_floats(std::max<int64_t>(samples, features[f].offsets.back()) * (dim + f), 5 + f));
    }
    for (int f = 0; f < 3; ++f) gradients.push_back({values[f].data(), dim + f});
    distinct_rows_reference({40, bags}, {0, slice_begins(samples, slices)}, distinct);
  }
  GradientSource source() const { return {&distinct, gradients, dim}; }
};

TEST(GradientSums, equal_the_reference_at_every_dimension) {
  on_every_instruction_set([&] {
    for (int64_t dim : {1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 48, 64, 100, 128, 256, 1024}) {
      for (bool scaled : {false, true}) {
        const TestTable table(64, 8, dim, scaled);
        const SliceRange whole{0, 8};
        const SumRange range{nullptr, 0, table.distinct.count()};
        std::vector<float> expected(range.count * dim, 9.0f), found(range.count * dim, 7.0f);
        sum_gradients_reference(table.source(), range, {&whole, 1}, expected.data());
        sum_gradients(table.source(), range, {&whole, 1}, found.data());
        ASSERT_TRUE(same_bits(found, expected)) << "dim " << dim << " scaled " << scaled;
      }
    }
  });
}

TEST(GradientSums, equal_the_reference_for_parts_of_the_rows_in_any_order) {
  const TestTable table(64, 8, 20, true, 9);
  const std::vector<int64_t> order{5, 2, 11, 0};
  const std::vector<SliceRange> subtrees{{0, 2}, {2, 4}, {4, 8}};
  for (const SumRange& range : {SumRange{order.data(), 0, 4}, SumRange{nullptr, 3, 4}}) {
    std::vector<float> expected(4 * 3 * 20), found(4 * 3 * 20);
    sum_gradients_reference(table.source(), range, subtrees, expected.data());
    sum_gradients(table.source(), range, subtrees, found.data());
    EXPECT_TRUE(same_bits(found, expected));
  }
}

TEST(GradientSums, equal_the_reference_wherever_they_go) {
  for (int64_t dim : {1, 20, 64}) {
    for (bool scaled : {false, true}) {
      const TestTable table(64, 8, dim, scaled, 9);
      const SliceRange whole{0, 8};
      const SumRange range{nullptr, 3, 30};
      std::vector<float> expected(30 * dim), found(30 * dim, 9.0f);
      sum_gradients_reference(table.source(), range, {&whole, 1}, expected.data());
      std::vector<float*> outs(30, nullptr);  // backwards, every third row nowhere
      for (int64_t i = 0; i < 30; ++i) {
        if (i % 3 > 0) outs[i] = found.data() + (29 - i) * dim;
      }
      sum_gradients(table.source(), 3, 30, outs.data());
      for (int64_t i = 0; i < 30; ++i) {
        const float* row = expected.data() + i * dim;
        const std::vector<float> of_row(row, row + dim), none(dim, 9.0f);
        const float* at = found.data() + (29 - i) * dim;
        ASSERT_TRUE(same_bits({at, at + dim}, i % 3 > 0 ? of_row : none)) << dim << " row " << i;
      }
    }
  }
}

// What several ranks do, each with its slices, is what one does with all of them.
TEST(GradientSums, of_ranks_add_up_to_those_of_one_bit_for_bit) {
  for (int slices : {1, 2, 4, 8, 16}) {
    const TestTable table(80, slices, 18, true, 6);
    const SliceRange whole{0, slices};
    const SumRange range{nullptr, 0, table.distinct.count()};
    std::vector<float> expected(range.count * 18);
    sum_gradients_reference(table.source(), range, {&whole, 1}, expected.data());
    for (int ranks = 1; ranks <= slices; ++ranks) {
      std::vector<SliceRange> all;
      for (int r = 0; r < ranks; ++r) {
        const auto own = subtrees(slices_of_rank(r, ranks, slices));
        all.insert(all.end(), own.begin(), own.end());
      }
      std::vector<float> sums(range.count * all.size() * 18);
      sum_gradients(table.source(), range, all, sums.data());
      std::vector<GradientPart> parts;
      std::vector<int64_t> begins{0};
      for (int64_t i = 0; i < range.count; ++i) {
        for (size_t s = 0; s < all.size(); ++s) {
          const float* sum = sums.data() + (i * all.size() + s) * 18;
          // Absent or zeros, as it may happen to travel.
          const bool zeros = std::all_of(sum, sum + 18, [](float x) { return x == 0.0f; });
          if (!zeros || i % 2 == 0) parts.push_back({sum, all[s].begin});
        }
        begins.push_back(static_cast<int64_t>(parts.size()));
      }
      for (auto* combine : {&sum_parts, &sum_parts_reference}) {
        std::vector<float> found(range.count * 18, 3.0f);
        combine({begins, parts}, 0, range.count, 18, found.data());
        ASSERT_TRUE(same_bits(found, expected)) << slices << " slices, " << ranks << " ranks";
      }
    }
  }
}

TEST(GradientSums, give_zeros_for_a_row_without_parts) {
  const std::vector<float> a{1e8f, 1.0f}, b{1.0f, 2.0f}, c{-1e8f, 4.0f};
  const std::vector<GradientPart> parts{{a.data(), 1}, {b.data(), 2}, {c.data(), 3}};
  const std::vector<int64_t> begins{0, 0, 3};
  std::vector<float> found(4, 9.0f);
  sum_parts({begins, parts}, 0, 2, 2, found.data());
  EXPECT_EQ(found, (std::vector<float>{0.0f, 0.0f, 1e8f + (1.0f - 1e8f), 7.0f}));
}

}  // namespace
}  // namespace recmill::kernels
