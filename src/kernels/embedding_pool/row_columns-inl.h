// SPDX-License-Identifier: Apache-2.0
// Blocks of a row's columns that are in registers together. Included once for each instruction
// set (Highway's foreach_target).

#if defined(RECMILL_KERNELS_ROW_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_ROW_COLUMNS_INL_H_
#undef RECMILL_KERNELS_ROW_COLUMNS_INL_H_
#else
#define RECMILL_KERNELS_ROW_COLUMNS_INL_H_
#endif

#include <hwy/cache_control.h>

#include "kernels/row_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

/// kVectors vectors of consecutive columns of float32 sums, read from rows of class Row; kTail: one
/// vector's first `count` lanes alone.
template <class RowClass, class Tag, size_t kVectorCount, bool kTail>
class RowColumns {
 public:
  using Row = RowClass;
  using Vector = hn::Vec<Tag>;
  static constexpr size_t kVectors = kVectorCount;
  static constexpr Tag kTag{};
  static constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(kTag));

  /// Columns from `column` on; `count` of them, which is kVectors * kWidth without kTail.
  RowColumns(int64_t column, int64_t count) : column_(column), count_(count) {}

  int64_t column() const { return column_; }
  int64_t count() const { return count_; }

  /// Where the columns of the row at `row` begin.
  HWY_INLINE const std::byte* of(const std::byte* row) const { return row + column_ * Row::kBytes; }

  // In what follows `at` is where the columns begin, of a row or of an output: one address for all
  // vectors of a loop, which has no registers to spare.
  HWY_INLINE void load(const std::byte* at, Vector* to) const {
    for (size_t k = 0; k < kVectors; ++k) {
      to[k] = kTail ? Row::load_first(kTag, at, count_)
                    : Row::load(kTag, at + k * kWidth * Row::kBytes);
    }
  }
  /// What store() wrote.
  HWY_INLINE void load_sums(const float* at, Vector* to) const {
    for (size_t k = 0; k < kVectors; ++k) {
      to[k] = kTail ? partial_vectors::HWY_NAMESPACE::load_first(kTag, at, count_)
                    : hn::LoadU(kTag, at + k * kWidth);
    }
  }
  HWY_INLINE void store(const Vector* from, float* at) const {
    if constexpr (kTail) {
      partial_vectors::HWY_NAMESPACE::store_first(kTag, from[0], at, count_);
    } else {
      for (size_t k = 0; k < kVectors; ++k) hn::StoreU(from[k], kTag, at + k * kWidth);
    }
  }
  /// store() past the caches; `at` is aligned to a vector.
  HWY_INLINE void stream(const Vector* from, float* at) const {
    if constexpr (kTail) {
      store(from, at);
    } else {
      for (size_t k = 0; k < kVectors; ++k) hn::Stream(from[k], kTag, at + k * kWidth);
    }
  }
  /// Asks for the columns' cache lines.
  HWY_INLINE void fetch(const std::byte* at) const {
    const int64_t bytes = (kTail ? count_ : static_cast<int64_t>(kVectors) * kWidth) * Row::kBytes;
    for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(at + b);
    if (bytes % 64 != 0) __builtin_prefetch(at + bytes - 1);
  }

 private:
  int64_t column_;
  int64_t count_;
};

/// Calls visit(columns) for blocks that cover [0, dim) in order, with at most kHeld vectors each.
template <class Row, size_t kHeld, class Visit>
HWY_INLINE void by_columns(int64_t dim, const Visit& visit) {
  int64_t column = 0;
  const auto blocks = [&]<class Tag, size_t kVectors>(Tag,
                                                      std::integral_constant<size_t, kVectors>) {
    if constexpr (kVectors <= kHeld) {
      constexpr int64_t width = static_cast<int64_t>(kVectors * hn::MaxLanes(Tag()));
      for (; dim - column >= width; column += width)
        visit(RowColumns<Row, Tag, kVectors, false>(column, width));
    }
  };
  blocks(kFloats, std::integral_constant<size_t, 8>());
  blocks(kFloats, std::integral_constant<size_t, 4>());
  blocks(kFloats, std::integral_constant<size_t, 2>());
  blocks(kFloats, std::integral_constant<size_t, 1>());
  if constexpr (kLanes > 8) blocks(hn::CappedTag<float, 8>(), std::integral_constant<size_t, 1>());
  if constexpr (kLanes > 4) blocks(hn::CappedTag<float, 4>(), std::integral_constant<size_t, 1>());
  if (column < dim) visit(RowColumns<Row, hn::CappedTag<float, 4>, 1, true>(column, dim - column));
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#endif
