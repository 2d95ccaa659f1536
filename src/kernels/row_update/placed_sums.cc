// SPDX-License-Identifier: Apache-2.0
#include "kernels/row_update/placed_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_update/placed_sums.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/row_update/placed_sums-inl.h"

#if HWY_ONCE
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "base/status.h"

namespace recmill::kernels {

HWY_EXPORT(SumPlaced);

namespace {

/// Below this many lookups a row of the table, rows are listed as they come.
constexpr int64_t kRowsOfLookup = 4;
/// Counts of more rows than this leave a core's own cache.
constexpr int64_t kMostRows = 1 << 18;
/// Samples that gradient rows are fetched ahead.
constexpr int64_t kAhead = 16;
/// Rows of fewer lookups than this are among others of as many.
constexpr uint32_t kKinds = 64;

int64_t stride_of(int64_t dim) {
  return (dim + 3) / 4 * 4;
}

/// body(feature, first sample, end sample, slice) in the order of summation.
template <class Body>
void for_each_part(const TableBags& bags, const Body& body) {
  for (int slice = 0; slice < bags.slices; ++slice) {
    for (const BagGradients& feature : bags.features) {
      if (feature.bags.samples > 0)  // an empty batch may have no offsets
        body(feature, feature.slice_begins[slice], feature.slice_begins[slice + 1], slice);
    }
  }
}

}  // namespace

TemplateSpec PlacedSums::spec() {
  TemplateSpec spec;
  spec.name = "placed_sums";
  spec.meaning = "a counting sort of the lookups by row; each row sums its own in a cache's lines";
  spec.tunables = {
      {"by_count", "1: rows of as many lookups are stored together; 0: as listed", {1, 0}}};
  spec.valid = [](const FeatureShape& shape, ParameterValues, const DeviceSpec& device) {
    return device.kind == DeviceKind::cpu && shape.rows <= kMostRows;
  };
  spec.scratch_bytes = [](const FeatureShape& shape, ParameterValues) { return shape.rows * 4; };
  return spec;
}

void PlacedSums::fold(const TableBags& bags, ParameterValues values) {
  number_gradients(bags);
  count_rows(bags);
  order_rows(values[0] != 0);
  place_lookups(bags);
  placed_ = {gradients_.data(),
             slices_.data(),
             begins_.data(),
             numbers_.data(),
             weights_.empty() ? nullptr : weights_.data(),
             stride_of(bags.dim),
             bags.dim,
             bags.slices};
}

void PlacedSums::number_gradients(const TableBags& bags) {
  const int64_t stride = stride_of(bags.dim);
  int64_t numbers = 0;
  for (const BagGradients& feature : bags.features)
    numbers += feature.pooling == Pooling::none ? feature.bags.lookups() : feature.bags.samples;
  RECMILL_CHECK(numbers <= std::numeric_limits<uint32_t>::max(), std::to_string(numbers));
  if (static_cast<int64_t>(slices_.size()) < numbers) slices_.resize(numbers);
  if (static_cast<int64_t>(gradients_.size()) < numbers * stride)
    gradients_.resize(numbers * stride);
  float* to = gradients_.data();
  uint16_t* slice_of = slices_.data();
  const auto copy = [&](const float* from, float count, int slice) {
    std::copy_n(from, bags.dim, to);
    std::fill(to + bags.dim, to + stride, 0.0f);
    if (count > 0)
      for (int64_t e = 0; e < bags.dim; ++e) to[e] = to[e] / count;
    to += stride;
    *slice_of++ = static_cast<uint16_t>(slice);
  };
  for_each_part(bags, [&](const BagGradients& feature, int64_t first, int64_t end, int slice) {
    const GradientRows& from = feature.gradients;
    const int64_t* const offsets = feature.bags.offsets;
    if (feature.pooling == Pooling::none) {
      for (int64_t j = offsets[first]; j < offsets[end]; ++j)
        copy(from.data + (j - offsets[0]) * from.stride, 0.0f, slice);
      return;
    }
    const bool mean = feature.pooling == Pooling::mean;
    for (int64_t i = first; i < end; ++i) {
      if (offsets[i] == offsets[i + 1]) continue;
      const float* ahead = from.data + std::min(i + kAhead, end - 1) * from.stride;
      for (int64_t e = 0; e < bags.dim; e += 16) __builtin_prefetch(ahead + e);
      copy(from.data + i * from.stride,
           mean ? static_cast<float>(offsets[i + 1] - offsets[i]) : 0.0f, slice);
    }
  });
}

void PlacedSums::count_rows(const TableBags& bags) {
  if (static_cast<int64_t>(counts_.size()) < bags.rows) counts_.resize(bags.rows);
  const int64_t lookups = bags.lookups();
  const bool few = lookups * kRowsOfLookup < bags.rows;
  listed_.resize(1 + (few ? lookups : bags.rows));
  uint32_t* const counts = counts_.data();
  int64_t* const listed = listed_.data();
  int64_t count = 0;
  if (few) {
    for_each_row(bags, [&](int64_t row) {
      listed[count] = row;
      count += counts[row] == 0;
      ++counts[row];
    });
  } else {
    for_each_row(bags, [&](int64_t row) { ++counts[row]; });
    for (int64_t row = 0; row < bags.rows; ++row) {
      listed[count] = row;
      count += counts[row] != 0;
    }
  }
  listed_.resize(count);
}

// Where rows of as many lookups are stored together, sums find no branch that cannot be predicted.
void PlacedSums::order_rows(bool by_count) {
  const auto count = static_cast<int64_t>(listed_.size());
  if (by_count) {
    const auto kind = [&](int64_t row) { return std::min(counts_[row], kKinds - 1); };
    std::array<int64_t, kKinds> next{};
    for (const int64_t row : listed_) ++next[kind(row)];
    int64_t first = 0;
    for (int64_t& begin : next) first += std::exchange(begin, first);
    rows_.resize(count);
    for (const int64_t row : listed_) rows_[next[kind(row)]++] = row;
  } else {
    std::swap(rows_, listed_);
  }
  begins_.resize(count + 1);
  int64_t begin = 0;
  for (int64_t i = 0; i < count; ++i) {  // from here on: where a row's next lookup goes
    begins_[i] = begin;
    begin += std::exchange(counts_[rows_[i]], static_cast<uint32_t>(begin));
  }
  begins_[count] = begin;
}

void PlacedSums::place_lookups(const TableBags& bags) {
  const int64_t lookups = bags.lookups();
  RECMILL_CHECK(lookups <= std::numeric_limits<uint32_t>::max(), std::to_string(lookups));
  const bool weighted =
      std::any_of(bags.features.begin(), bags.features.end(),
                  [](const BagGradients& feature) { return feature.bags.weights != nullptr; });
  if (static_cast<int64_t>(numbers_.size()) < lookups) numbers_.resize(lookups);
  weights_.resize(weighted ? lookups : 0);
  uint32_t* const next = counts_.data();
  uint32_t* const numbers = numbers_.data();
  float* const weights = weights_.data();
  uint32_t number = 0;
  for_each_part(bags, [&](const BagGradients& feature, int64_t first, int64_t end, int) {
    const JaggedView& view = feature.bags;
    const bool pooled = feature.pooling != Pooling::none;
    for (int64_t i = first; i < end; ++i) {
      for (int64_t j = view.offsets[i]; j < view.offsets[i + 1]; ++j) {
        const uint32_t at = next[view.rows[j]]++;
        numbers[at] = number;
        if (weighted) weights[at] = view.weights != nullptr ? view.weights[j] : 1.0f;
        number += !pooled;
      }
      number += pooled && view.offsets[i] < view.offsets[i + 1];
    }
  });
  for (const int64_t row : rows_) counts_[row] = 0;
}

void PlacedSums::take(int64_t first, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(SumPlaced)(placed_, first, count, out);
}

}  // namespace recmill::kernels
#endif
