// SPDX-License-Identifier: Apache-2.0
// placed_sums.h, compiled once for each instruction set (Highway's foreach_target).
#if defined(RECMILL_KERNELS_ROW_UPDATE_PLACED_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_ROW_UPDATE_PLACED_SUMS_INL_H_
#undef RECMILL_KERNELS_ROW_UPDATE_PLACED_SUMS_INL_H_
#else
#define RECMILL_KERNELS_ROW_UPDATE_PLACED_SUMS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/row_lanes-inl.h"
#include "kernels/row_update/placed_sums.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

/// Sums columns [column, column + kVectors vectors) of one row after the other; the last vector may
/// reach behind the row's end, where gradients are +0.
/// kGroup: slices whose folds are beside each other.
template <class D, int64_t kVectors, int kGroup, bool kWeighted>
class PlacedColumns {
 public:
  PlacedColumns(const PlacedLookups& placed, int64_t column)
      : gradients_(placed.gradients + column),
        stride_(placed.stride),
        numbers_(placed.numbers),
        slices_(placed.slices),
        weights_(placed.weights),
        left_(placed.dim - column) {}

  /// out [dim - column ...] = the sum over lookups [begin, end), at least one.
  HWY_INLINE void sum(int64_t begin, int64_t end, float* out) {
    Columns sum;
    switch (end - begin) {
      case 1:
        sum_few<1>(begin, sum);
        break;
      case 2:
        sum_few<2>(begin, sum);
        break;
      case 3:
        sum_few<3>(begin, sum);
        break;
      default:
        sum_many(begin, end, sum);
    }
    store(sum, out);
  }

 private:
  static constexpr int64_t kWidth = hn::MaxLanes(D());
  static constexpr int kDeepest = 15;  // groups that wait for their siblings: slices are 16 bits
  using Bits = hn::RebindToUnsigned<D>;
  struct Columns {
    hn::Vec<D> at[kVectors];
  };

  /// sum = sum + the gradient of the lookup in place `place`.
  HWY_INLINE void add(int64_t place, Columns& sum) const {
    const float* from = gradients_ + numbers_[place] * stride_;
    for (int64_t k = 0; k < kVectors; ++k)
      sum.at[k] = hn::Add(sum.at[k], scaled(hn::LoadU(D(), from + k * kWidth), place));
  }
  HWY_INLINE hn::Vec<D> scaled(hn::Vec<D> gradient, int64_t place) const {
    if constexpr (kWeighted) return hn::Mul(gradient, hn::Set(D(), weights_[place]));
    return gradient;
  }
  HWY_INLINE unsigned slice(int64_t place) const { return slices_[numbers_[place]]; }

  /// kCount lookups, 1, 2 or 3: without a branch on their slices, which cannot be predicted.
  template <int64_t kCount>
  HWY_INLINE void sum_few(int64_t begin, Columns& sum) const {
    int64_t order[3] = {begin, begin + 1, begin + 2};
    if constexpr (kCount == 3) {
      // (a + b) + c, or (b + c) + a when b and c meet first in the tree.
      const unsigned middle = slice(begin + 1);
      const int64_t turn = (slice(begin) ^ middle) > (middle ^ slice(begin + 2));
      order[0] += turn, order[1] += turn, order[2] -= 2 * turn;
    }
    for (int64_t k = 0; k < kVectors; ++k) sum.at[k] = hn::Zero(D());
    for (int64_t n = 0; n < kCount; ++n) add(order[n], sum);
  }

  HWY_INLINE void sum_many(int64_t begin, int64_t end, Columns& sum) {
    unsigned group = slice(begin) / kGroup;
    begin = sum_group(begin, end, group, sum);
    if (begin < end) join_groups(begin, end, group, sum);
  }

  /// Folds each slice of the group, and sums them by the tree. Gives the first lookup behind it.
  HWY_INLINE int64_t sum_group(int64_t place, int64_t end, unsigned group, Columns& sum) {
    // The compiler cannot know that what is stored changes none of these.
    const float* const gradients = gradients_;
    const int64_t stride = stride_;
    const uint32_t* const numbers = numbers_;
    const uint16_t* const slices = slices_;
    const unsigned first = group * kGroup;
    Columns fold;
    for (int64_t k = 0; k < kVectors; ++k) fold.at[k] = hn::Zero(D());
    unsigned of = slice(place) - first;
    do {
      // Neither a branch nor a load waits for what slice a lookup is of: the last fold stored
      // stays.
      const float* from = gradients + numbers[place] * stride;
      float* to = folds_ + of * kVectors * kWidth;
      for (int64_t k = 0; k < kVectors; ++k) {
        fold.at[k] = hn::Add(fold.at[k], scaled(hn::LoadU(D(), from + k * kWidth), place));
        hn::Store(fold.at[k], D(), to + k * kWidth);
      }
      if (++place == end) break;
      const unsigned next = slices[numbers[place]] - first;
      const auto same = hn::BitCast(D(), hn::Set(Bits(), next == of ? ~0u : 0u));
      for (int64_t k = 0; k < kVectors; ++k) fold.at[k] = hn::And(fold.at[k], same);
      of = next;
    } while (of < kGroup);
    for (int64_t k = 0; k < kVectors; ++k) {
      hn::Vec<D> parts[kGroup];
      for (int of = 0; of < kGroup; ++of) {
        float* at = folds_ + (of * kVectors + k) * kWidth;
        parts[of] = hn::Load(D(), at);
        hn::Store(hn::Zero(D()), D(), at);
      }
      for (int width = 1; width < kGroup; width *= 2)
        for (int of = 0; of < kGroup; of += 2 * width)
          parts[of] = hn::Add(parts[of], parts[of + width]);
      sum.at[k] = parts[0];
    }
    return place;
  }

  /// Goes on behind `group`. Sums of finished subtrees wait until the subtree beside them is
  /// finished too (gradient_sums.cc).
  void join_groups(int64_t place, int64_t end, unsigned group, Columns& sum) {
    Columns waiting[kDeepest];
    unsigned groups[kDeepest];
    int depth = 0;
    const auto join = [&] {
      --depth;
      for (int64_t k = 0; k < kVectors; ++k) sum.at[k] = hn::Add(waiting[depth].at[k], sum.at[k]);
    };
    while (place < end) {
      const unsigned next = slice(place) / kGroup;
      while (depth > 0 && (groups[depth - 1] ^ group) < (group ^ next)) join();
      waiting[depth] = sum;
      groups[depth++] = group;
      group = next;
      place = sum_group(place, end, group, sum);
    }
    while (depth > 0) join();
  }

  HWY_INLINE void store(const Columns& sum, float* out) const {
    if constexpr (kVectors == 1) {
      if (left_ < kWidth)
        return partial_vectors::HWY_NAMESPACE::store_first(D(), sum.at[0], out, left_);
    }
    for (int64_t k = 0; k < kVectors; ++k) hn::StoreU(sum.at[k], D(), out + k * kWidth);
  }

  const float* const gradients_;
  const int64_t stride_;
  const uint32_t* const numbers_;
  const uint16_t* const slices_;
  const float* const weights_;
  const int64_t left_;  // columns of the row from the first on
  alignas(64) float folds_[kGroup * kVectors * kWidth] = {};  // zeros between rows
};

template <int kGroup, bool kWeighted>
void sum_placed(const PlacedLookups& placed, int64_t first, int64_t count, float* out) {
  int64_t column = 0;
  const auto sum = [&]<class D, int64_t kVectors>(D) {
    PlacedColumns<D, kVectors, kGroup, kWeighted> columns(placed, column);
    for (int64_t i = 0; i < count; ++i)
      columns.sum(placed.begins[first + i], placed.begins[first + i + 1],
                  out + i * placed.dim + column);
    column += kVectors * static_cast<int64_t>(hn::MaxLanes(D()));
  };
  const int64_t dim = placed.dim;
  while (column + 8 * kLanes <= dim) sum.template operator()<FloatTag, 8>(kFloats);
  if (column + 4 * kLanes <= dim) sum.template operator()<FloatTag, 4>(kFloats);
  if (column + 2 * kLanes <= dim) sum.template operator()<FloatTag, 2>(kFloats);
  if (column + kLanes <= dim) sum.template operator()<FloatTag, 1>(kFloats);
  using Eight = hn::CappedTag<float, std::min<int64_t>(kLanes, 8)>;
  using Four = hn::CappedTag<float, std::min<int64_t>(kLanes, 4)>;
  if (column + 8 <= dim) sum.template operator()<Eight, 1>(Eight());
  while (column < dim) sum.template operator()<Four, 1>(Four());
}

void SumPlaced(const PlacedLookups& placed, int64_t first, int64_t count, float* out) {
  if (placed.slices_of_batch <= 4) {
    (placed.weights != nullptr ? sum_placed<4, true> : sum_placed<4, false>)(placed, first, count,
                                                                             out);
  } else {
    (placed.weights != nullptr ? sum_placed<8, true> : sum_placed<8, false>)(placed, first, count,
                                                                             out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#endif
