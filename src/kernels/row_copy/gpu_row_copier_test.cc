// SPDX-License-Identifier: Apache-2.0
// Rows on a GPU, copied as the CPU copies them.
#include "kernels/row_copy/gpu_row_copier.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "kernels/codegen/testing/test_code.h"
#include "kernels/row_copy/testing/gpu_row_copy_sample.h"

namespace recmill::kernels {
namespace {

using recmill::testing::TestArrays;

Result<std::vector<codegen::GpuCode>> compiled(std::span<const codegen::GpuSource> sources) {
  std::vector<codegen::GpuCode> codes;
  codes.push_back({codegen::test_code(sources[0], &gpu_row_copy_entry), nullptr, {}, 0});
  return codes;
}

class GpuRowCopierTest : public ::testing::TestWithParam<emulation::Turns> {
 protected:
  Gpu gpu_{recmill::testing::test_driver({.turns = GetParam()}), {}};
  GpuStream stream_ = *gpu_.open_stream();
  TestArrays arrays_{gpu_, stream_};
  GpuRowCopier copier_ = *GpuRowCopier::make(gpu_, &compiled);
};
INSTANTIATE_TEST_SUITE_P(Orders, GpuRowCopierTest,
                         ::testing::ValuesIn(std::array<emulation::Turns, 3>{
                             {{emulation::Order::forward},
                              {emulation::Order::reverse},
                              {emulation::Order::random, 5}}}));

/// Copies, and how far from the arrays' begin they read and write, in floats.
struct Copies {
  struct Place {
    int64_t rows, dim, from_stride, to_stride, from_at, to_at;
  };
  std::vector<Place> places;
  int64_t from_floats = 0, to_floats = 0;

  void add(int64_t rows, int64_t dim, int64_t from_gap, int64_t to_gap, int64_t shift) {
    places.push_back(
        {rows, dim, dim + from_gap, dim + to_gap, from_floats + shift, to_floats + shift});
    from_floats += shift + rows * (dim + from_gap);
    to_floats += shift + rows * (dim + to_gap);
  }
};

void expect_copied(const Copies& of, const GpuRowCopier& copier, GpuStream& stream,
                   TestArrays& arrays) {
  std::vector<float> from(of.from_floats), expected(of.to_floats, -1.0f);
  std::iota(from.begin(), from.end(), 0.0f);
  const float* const from_there = arrays.put(from);
  float* const to_there = arrays.put(expected);
  std::vector<gpu::RowCopy> copies;
  for (const auto& [rows, dim, from_stride, to_stride, from_at, to_at] : of.places) {
    copies.push_back({from_there + from_at, to_there + to_at, from_stride, to_stride, rows, dim});
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(from.begin() + from_at + row * from_stride, dim,
                  expected.begin() + to_at + row * to_stride);
  }
  ASSERT_TRUE(copier.copy(copies, stream).ok());
  EXPECT_EQ(arrays.get(to_there), expected);
}

TEST_P(GpuRowCopierTest, BringsRowsOfAnyWidthToAnyDistance) {
  Copies copies;
  copies.add(70, 16, 0, 112, 0);  // four floats at a time
  copies.add(33, 16, 112, 0, 0);
  copies.add(7, 5, 3, 0, 1);  // not aligned
  copies.add(0, 8, 0, 0, 0);
  copies.add(3, 1, 0, 1, 0);
  copies.add(1, 9000, 0, 0, 3);  // more than a block's
  copies.add(2, 8192, 4, 8, 4);
  copies.add(2100, 4, 0, 4, 0);
  expect_copied(copies, copier_, stream_, arrays_);
}

TEST_P(GpuRowCopierTest, TakesAsManyLaunchesAsThereAreCopies) {
  for (const int count : {0, 1, gpu::kMostCopies, 2 * gpu::kMostCopies + 1}) {
    Copies copies;
    for (int c = 0; c < count; ++c) copies.add(c % 3, 1 + c % 9, c % 2, c % 5, 0);
    expect_copied(copies, copier_, stream_, arrays_);
  }
}

}  // namespace
}  // namespace recmill::kernels
