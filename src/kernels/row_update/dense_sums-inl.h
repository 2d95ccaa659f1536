// SPDX-License-Identifier: Apache-2.0
// dense_sums.h, compiled once for each instruction set (Highway's foreach_target).
#if defined(RECMILL_KERNELS_ROW_UPDATE_DENSE_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_ROW_UPDATE_DENSE_SUMS_INL_H_
#undef RECMILL_KERNELS_ROW_UPDATE_DENSE_SUMS_INL_H_
#else
#define RECMILL_KERNELS_ROW_UPDATE_DENSE_SUMS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/row_lanes-inl.h"
#include "kernels/row_update/dense_sums.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

/// Floats that a row is padded to a multiple of: the narrowest vector that is worked in.
constexpr int64_t kNarrowest = 4;

/// Calls body(tag, first) for vectors that cover [0, floats), a multiple of kNarrowest.
template <class Body>
HWY_INLINE void for_each_vector(int64_t floats, const Body& body) {
  int64_t first = 0;
  for (; first + kLanes <= floats; first += kLanes) body(kFloats, first);
  if constexpr (kLanes >= 16) {
    if (first + 8 <= floats) body(hn::CappedTag<float, 8>(), first), first += 8;
  }
  if constexpr (kLanes >= 8) {
    if (first + 4 <= floats) body(hn::CappedTag<float, 4>(), first);
  }
}

/// Folds columns [column, column + kVectors vectors) of one feature's lookups; the last one, where
/// it is wider than the row, is +0 behind the row's end.
template <class D, int64_t kVectors, bool kWeighted>
class ColumnFold {
 public:
  ColumnFold(const BagGradients& feature, int64_t column, int64_t dim, float* sums, int64_t stride)
      : bags_(feature.bags),
        pooling_(feature.pooling),
        gradients_(feature.gradients),
        column_(column),
        left_(dim - column),
        sums_(sums + column),
        stride_(stride) {}

  /// Samples [first, last).
  void fold(int64_t first, int64_t last) const {
    if (pooling_ == Pooling::none) return fold_unpooled(first, last);
    Row row;
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = bags_.offsets[i], end = bags_.offsets[i + 1];
      if (begin == end) continue;
      load(i, row);
      if (pooling_ == Pooling::mean) {
        const auto count = hn::Set(D(), static_cast<float>(end - begin));
        for (int64_t k = 0; k < kVectors; ++k) row.at[k] = hn::Div(row.at[k], count);
      }
      for (int64_t j = begin; j < end; ++j) add(row, j);
    }
  }

 private:
  struct Row {
    hn::Vec<D> at[kVectors];
  };
  static constexpr int64_t kWidth = hn::MaxLanes(D());

  void fold_unpooled(int64_t first, int64_t last) const {
    Row row;
    for (int64_t j = bags_.offsets[first]; j < bags_.offsets[last]; ++j) {
      load(j - bags_.offsets[0], row);
      add(row, j);
    }
  }

  HWY_INLINE void load(int64_t gradient_row, Row& row) const {
    const float* from = gradients_.data + gradient_row * gradients_.stride + column_;
    if constexpr (kVectors == 1) {
      row.at[0] = left_ < kWidth ? partial_vectors::HWY_NAMESPACE::load_first(D(), from, left_)
                                 : hn::LoadU(D(), from);
    } else {
      for (int64_t k = 0; k < kVectors; ++k) row.at[k] = hn::LoadU(D(), from + k * kWidth);
    }
  }

  HWY_INLINE void add(const Row& row, int64_t lookup) const {
    float* to = sums_ + bags_.rows[lookup] * stride_;
    for (int64_t k = 0; k < kVectors; ++k, to += kWidth) {
      auto gradient = row.at[k];
      if constexpr (kWeighted) gradient = hn::Mul(gradient, hn::Set(D(), bags_.weights[lookup]));
      hn::StoreU(hn::Add(hn::LoadU(D(), to), gradient), D(), to);
    }
  }

  const JaggedView& bags_;
  const Pooling pooling_;
  const GradientRows& gradients_;
  const int64_t column_;
  const int64_t left_;  // columns from column_ on
  float* const sums_;
  const int64_t stride_;
};

/// One feature's samples of a slice, added to sums [rows][stride].
template <bool kWeighted>
void fold_feature(const BagGradients& feature, int slice, int64_t dim, float* sums,
                  int64_t stride) {
  int64_t column = 0;
  const auto fold = [&]<class D, int64_t kVectors>(D) {
    ColumnFold<D, kVectors, kWeighted>(feature, column, dim, sums, stride)
        .fold(feature.slice_begins[slice], feature.slice_begins[slice + 1]);
    column += kVectors * static_cast<int64_t>(hn::MaxLanes(D()));
  };
  while (column + 4 * kLanes <= dim) fold.template operator()<FloatTag, 4>(kFloats);
  if (column + 2 * kLanes <= dim) fold.template operator()<FloatTag, 2>(kFloats);
  if (column + kLanes <= dim) fold.template operator()<FloatTag, 1>(kFloats);
  using Eight = hn::CappedTag<float, std::min<int64_t>(kLanes, 8)>;
  using Four = hn::CappedTag<float, std::min<int64_t>(kLanes, 4)>;
  if (column + 8 <= dim) fold.template operator()<Eight, 1>(Eight());
  while (column < dim) fold.template operator()<Four, 1>(Four());
}

void FoldSlice(const TableBags& bags, int slice, float* sums, int64_t stride) {
  for (const BagGradients& feature : bags.features) {
    if (feature.bags.samples == 0) continue;  // an empty batch may have no offsets
    const auto fold = feature.bags.weights != nullptr ? fold_feature<true> : fold_feature<false>;
    fold(feature, slice, bags.dim, sums, stride);
  }
}

/// Adds the leaves of floats [at, at + floats) up and joins what waits; all of it is 0 again. The
/// first `kept` floats go to `out`.
template <int kLeaves>
HWY_INLINE void join_span(const DenseJoin& join, int64_t at, int64_t floats, int64_t kept,
                          float* out) {
  for_each_vector(floats, [&](auto d, int64_t first) {
    using V = hn::Vec<decltype(d)>;
    const V zero = hn::Zero(d);
    V sums[kLeaves];
    for (int l = 0; l < kLeaves; ++l) {
      float* leaf = join.sums + l * join.size + at + first;
      sums[l] = hn::LoadU(d, leaf);
      hn::StoreU(zero, d, leaf);
    }
    for (int width = 1; width < kLeaves; width *= 2)
      for (int l = 0; l < kLeaves; l += 2 * width) sums[l] = hn::Add(sums[l], sums[l + width]);
    for (int w = 0; w < join.waiting; ++w) {
      float* waiting = join.sums + (kLeaves + w) * join.size + at + first;
      sums[0] = hn::Add(hn::LoadU(d, waiting), sums[0]);
      hn::StoreU(zero, d, waiting);
    }
    if (kept - first >= static_cast<int64_t>(hn::MaxLanes(d))) {
      hn::StoreU(sums[0], d, out + first);
    } else if (kept > first) {
      partial_vectors::HWY_NAMESPACE::store_first(d, sums[0], out + first, kept - first);
    }
  });
}

template <int kLeaves>
void join_rows(const DenseJoin& join, std::span<const int64_t> rows, float* out) {
  const auto count = static_cast<int64_t>(rows.size());
  for (int64_t i = 0, run = 1; i < count; i += run, run = 1) {
    // Rows beside each other are worked through as one where nothing lies between them.
    if (join.dim == join.stride)
      while (i + run < count && rows[i + run] == rows[i] + run) ++run;
    const int64_t at = rows[i] * join.stride, floats = run * join.stride;
    if (join.wait) {
      join_span<kLeaves>(join, at, floats, floats,
                         join.sums + (kLeaves + join.waiting) * join.size + at);
    } else {
      join_span<kLeaves>(join, at, floats, floats - join.stride + join.dim, out + i * join.dim);
    }
  }
}

void JoinRows(const DenseJoin& join, std::span<const int64_t> rows, float* out) {
  switch (join.leaves) {
    case 1:
      return join_rows<1>(join, rows, out);
    case 2:
      return join_rows<2>(join, rows, out);
    case 4:
      return join_rows<4>(join, rows, out);
    default:
      return join_rows<8>(join, rows, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#endif
