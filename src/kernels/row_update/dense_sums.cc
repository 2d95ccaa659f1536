// SPDX-License-Identifier: Apache-2.0
#include "kernels/row_update/dense_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_update/dense_sums.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/row_update/dense_sums-inl.h"

#if HWY_ONCE
#include <algorithm>
#include <bit>

#include "base/status.h"

namespace recmill::kernels {

HWY_EXPORT(FoldSlice);
HWY_EXPORT(JoinRows);

namespace {

/// Below this many lookups a row of the table, rows are listed as they come.
constexpr int64_t kRowsOfLookup = 4;
/// Beyond this nothing is gained over finding the distinct rows.
constexpr int64_t kMostBytes = 64 << 20;

int64_t stride_of(int64_t dim) {
  return (dim + 3) / 4 * 4;
}
/// Sums of groups of slices that may wait at a time.
int levels_of(int groups) {
  return std::countr_zero(static_cast<unsigned>(groups));
}

}  // namespace

TemplateSpec DenseSums::spec() {
  TemplateSpec spec;
  spec.name = "dense_sums";
  spec.meaning = "the folds of every row of the table are stored side by side, slice by slice";
  spec.tunables = {{"leaves", "slices whose folds are stored side by side", {1, 2, 4, 8}}};
  spec.scratch_bytes = [](const FeatureShape& shape, ParameterValues values) {
    return values[0] * shape.rows * stride_of(shape.dim) * 4;
  };
  spec.valid = [bytes = spec.scratch_bytes](const FeatureShape& shape, ParameterValues values,
                                            const DeviceSpec& device) {
    return device.kind == DeviceKind::cpu && bytes(shape, values) <= kMostBytes;
  };
  return spec;
}

void DenseSums::fold(const TableBags& bags, ParameterValues values) {
  const int leaves = std::min(static_cast<int>(values[0]), bags.slices);
  const int groups = bags.slices / leaves;
  const int64_t stride = stride_of(bags.dim), size = bags.rows * stride;
  const auto bytes = static_cast<size_t>((leaves + levels_of(groups)) * size * 4);
  if (sums_.size() < bytes) {
    auto buffer = Buffer::allocate_huge(bytes);
    RECMILL_CHECK(buffer.ok(), buffer.status().message());
    sums_ = *std::move(buffer);
  }
  float* const sums = sums_.as<float>().data();
  list_rows(bags);
  for (int group = 0; group < groups; ++group) {
    for (int leaf = 0; leaf < leaves; ++leaf) {
      HWY_DYNAMIC_DISPATCH(FoldSlice)(bags, group * leaves + leaf, sums + leaf * size, stride);
    }
    // As in a binary counter, a group's trailing ones say what waits for it.
    last_ = {sums,
             size,
             stride,
             bags.dim,
             leaves,
             std::countr_one(static_cast<unsigned>(group)),
             group + 1 < groups};
    if (last_.wait) HWY_DYNAMIC_DISPATCH(JoinRows)(last_, rows_, nullptr);
  }
}

void DenseSums::list_rows(const TableBags& bags) {
  if (static_cast<int64_t>(touched_.size()) < bags.rows) touched_.resize(bags.rows);
  const int64_t lookups = bags.lookups();
  const bool few = lookups * kRowsOfLookup < bags.rows;
  rows_.resize(1 + (few ? lookups : bags.rows));
  uint8_t* const touched = touched_.data();
  int64_t* const listed = rows_.data();
  int64_t count = 0;
  if (few) {
    for_each_row(bags, [&](int64_t row) {
      listed[count] = row;
      count += 1 - touched[row];
      touched[row] = 1;
    });
    for (int64_t i = 0; i < count; ++i) touched[listed[i]] = 0;
  } else {
    for_each_row(bags, [&](int64_t row) { touched[row] = 1; });
    for (int64_t row = 0; row < bags.rows; ++row) {
      listed[count] = row;
      count += touched[row];
    }
    std::fill_n(touched, bags.rows, 0);
  }
  rows_.resize(count);
}

void DenseSums::take(int64_t first, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(JoinRows)(last_, rows().subspan(first, count), out);
}

}  // namespace recmill::kernels
#endif
