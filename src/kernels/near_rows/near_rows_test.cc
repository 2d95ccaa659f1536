// SPDX-License-Identifier: Apache-2.0
// Slots of rows, against a list of the near ones, on the CPU and on a GPU.
#include "kernels/near_rows/near_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kernels/codegen/testing/test_code.h"
#include "kernels/near_rows/gpu_near_rows.h"

namespace recmill::kernels {
namespace {

/// Of a table of `rows`, about `share` of them; always some at the ends of words and lines.
NearRows near_rows(int64_t rows, double share, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int64_t> near;
  for (int64_t row = 0; row < rows; ++row) {
    const bool is_edge = row % 64 == 63 || row % gpu::NearLine::kRows == 0;
    if (std::uniform_real_distribution<>()(random) < share || (is_edge && share > 0))
      near.push_back(row);
  }
  return {rows, std::move(near)};
}

int64_t plain_slot(const NearRows& of, int64_t row) {
  const auto near = of.near_rows();
  const auto found = std::ranges::lower_bound(near, row);
  return found != near.end() && *found == row ? found - near.begin() : of.near() + row;
}

TEST(NearRows, HaveTheFirstSlotsAndAllRowsTheirOwnBehind) {
  for (const int64_t rows : {1, 2, 63, 64, 65, 383, 384, 385, 5000}) {
    for (const double share : {0.0, 0.01, 0.5, 1.0}) {
      const NearRows of = near_rows(rows, share, 7);
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t slot = plain_slot(of, row);
        ASSERT_EQ(of.slot(row), slot) << rows << ", " << row;
        EXPECT_EQ(of.row(slot), row);
        EXPECT_EQ(of.is_near(row), slot < of.near());
        EXPECT_LT(slot, of.slots());
      }
    }
  }
}

TEST(NearRows, TakeASixthOfAByteARow) {
  const NearRows of(1 << 20, {3});
  EXPECT_EQ(NearRows::bytes_of_lines(1 << 20), static_cast<int64_t>(of.lines().size_bytes()));
  EXPECT_LE(of.lines().size_bytes() * 6, (1 << 20) + 6 * sizeof(gpu::NearLine));
  EXPECT_EQ(NearRows::bytes_of_lines(0), 0);
}

class GpuNearRowsTest : public ::testing::TestWithParam<emulation::Turns> {
 protected:
  Gpu gpu_{recmill::testing::test_driver({.turns = GetParam()}), {}};
  GpuStream stream_ = *gpu_.open_stream();
  recmill::testing::TestArrays arrays_{gpu_, stream_};
  GpuNearRows kernels_ = *GpuNearRows::make(gpu_, &codegen::compile_for_tests);
};
INSTANTIATE_TEST_SUITE_P(Orders, GpuNearRowsTest,
                         ::testing::ValuesIn(std::array<emulation::Turns, 3>{
                             {{emulation::Order::forward},
                              {emulation::Order::reverse},
                              {emulation::Order::random, 5}}}));

TEST_P(GpuNearRowsTest, MapsRowsAsTheHostAndCountsWhatIsFar) {
  std::mt19937 random(3);
  const size_t count = gpu::kMostMappedFeatures + 5;  // more than a launch has
  std::vector<NearRows> tables;
  std::vector<std::vector<int64_t>> rows, expected;
  std::vector<gpu::MappedFeature> features;
  uint64_t far = 0;
  for (size_t f = 0; f < count; ++f) {
    const NearRows& of = tables.emplace_back(near_rows(1 + 37 * static_cast<int64_t>(f), 0.3, 11));
    const int64_t lookups = f == 9 ? 0 : f == 3 ? 5000 : static_cast<int64_t>(random() % 300);
    rows.emplace_back();
    expected.emplace_back();
    for (int64_t i = 0; i < lookups; ++i) {
      rows.back().push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(of.rows())));
      expected.back().push_back(of.slot(rows.back().back()));
      far += expected.back().back() >= of.near() ? 1 : 0;
    }
  }
  std::vector<i64*> slots;
  for (size_t f = 0; f < count; ++f) {
    const std::vector<gpu::NearLine> lines(tables[f].lines().begin(), tables[f].lines().end());
    slots.push_back(arrays_.put(std::vector<i64>(rows[f].size() + 1, -7)));
    std::vector<i64> of_bags(rows[f].begin(), rows[f].end());
    of_bags.push_back(0);  // so that there is an address
    features.push_back({arrays_.put(of_bags), slots.back(), std::ssize(rows[f]), arrays_.put(lines),
                        tables[f].near()});
  }
  u64* const counted = arrays_.put(std::vector<u64>{1});
  ASSERT_TRUE(kernels_.map(features, counted, stream_).ok());
  for (size_t f = 0; f < count; ++f) {
    expected[f].push_back(-7);
    const auto found = arrays_.get(slots[f]);
    EXPECT_EQ(std::vector<int64_t>(found.begin(), found.end()), expected[f]) << f;
  }
  EXPECT_EQ(arrays_.get(counted)[0], far + 1) << "on top of what was there";
}

TEST_P(GpuNearRowsTest, CountsFarOnesAmongThoseFound) {
  std::mt19937 random(4);
  std::vector<gpu::CountedTable> tables;
  std::vector<i64> expected;
  i64* const far = arrays_.put(std::vector<i64>(gpu::kMostCountedTables + 3, -1));
  for (int t = 0; t < gpu::kMostCountedTables + 3; ++t) {
    const i64 near = static_cast<i64>(random() % 40);
    std::vector<i64> slots;
    for (i64 slot = 0; slot < 60; ++slot)
      if (t % 7 != 0 && random() % 3 == 0) slots.push_back(slot);
    expected.push_back(std::ranges::count_if(slots, [&](i64 slot) { return slot >= near; }));
    i64* const count = arrays_.put(std::vector<i64>{std::ssize(slots)});
    slots.push_back(0);  // so that there is an address
    tables.push_back({arrays_.put(slots), count, near, far + t});
  }
  ASSERT_TRUE(kernels_.count_far(tables, stream_).ok());
  EXPECT_EQ(arrays_.get(far), expected);
}

}  // namespace
}  // namespace recmill::kernels
