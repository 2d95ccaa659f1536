// SPDX-License-Identifier: Apache-2.0
// apply_rows.h, compiled once for each instruction set (Highway's foreach_target). Loops over
// elements are left to the compiler: a formula is written once, for floats.

#if defined(RECMILL_KERNELS_ROW_UPDATE_APPLY_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_ROW_UPDATE_APPLY_ROWS_INL_H_
#undef RECMILL_KERNELS_ROW_UPDATE_APPLY_ROWS_INL_H_
#else
#define RECMILL_KERNELS_ROW_UPDATE_APPLY_ROWS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/row_lanes-inl.h"
#include "kernels/row_update/apply_rows.h"
#include "kernels/row_update/rounding.h"
#include "kernels/row_update/with_l2.h"
#include "kernels/row_values.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

constexpr int64_t kSquareLanes = 16;
/// Elements and rows that are worked through at a time: local arrays of this length, which nothing
/// else can point to, are what the compiler turns into vectors.
constexpr int64_t kGroup = 16;
/// Records that are fetched ahead of the update, in bytes.
constexpr int64_t kFetchBytes = 4096;

/// Adds a vector's lanes pairwise, the upper half to the lower, until one is left.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE float add_lanes(FloatTag, Floats lanes) {
  return hn::GetLane(lanes);
}
#else
template <class Tag>
HWY_INLINE float add_lanes(Tag, hn::Vec<Tag> lanes) {
  if constexpr (hn::MaxLanes(Tag()) == 1) {
    return hn::GetLane(lanes);
  } else {
    constexpr hn::Half<Tag> half;
    return add_lanes(half, hn::Add(hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
  }
}
#endif

/// In 16 lanes, then pairwise.
HWY_INLINE float sum_of_squares(const float* gradient, int64_t dim) {
  constexpr int64_t kParts = kSquareLanes / kLanes;
  Floats sums[kParts];
  for (int64_t p = 0; p < kParts; ++p) sums[p] = hn::Zero(kFloats);
  int64_t e = 0;
  for (; e + kSquareLanes <= dim; e += kSquareLanes) {
    for (int64_t p = 0; p < kParts; ++p) {
      const Floats g = hn::LoadU(kFloats, gradient + e + p * kLanes);
      sums[p] = hn::Add(sums[p], hn::Mul(g, g));
    }
  }
  for (int64_t p = 0; e < dim; e += kLanes, ++p) {
    const Floats g =
        dim - e < kLanes ? load_first(gradient + e, dim - e) : hn::LoadU(kFloats, gradient + e);
    sums[p] = hn::Add(sums[p], hn::Mul(g, g));
  }
  for (int64_t half = kParts / 2; half > 0; half /= 2)
    for (int64_t p = 0; p < half; ++p) sums[p] = hn::Add(sums[p], sums[p + half]);
  return add_lanes(kFloats, sums[0]);
}

/// Elements [0, count) of a row, at most kGroup, whose state columns are `dim` floats apart.
template <class Formula>
HWY_INLINE void update_group(const Formula& formula, float* weight, float* state,
                             const float* gradient, const float* factors, int64_t count,
                             int64_t dim) {
  float weights[kGroup] = {}, gradients[kGroup] = {}, of_row[Formula::kFactors + 1] = {};
  float states[Formula::kElementColumns + 1][kGroup] = {};
  std::copy_n(weight, count, weights);
  std::copy_n(gradient, count, gradients);
  std::copy_n(factors, Formula::kFactors, of_row);
  for (int c = 0; c < Formula::kElementColumns; ++c) std::copy_n(state + c * dim, count, states[c]);
  for (int64_t l = 0; l < kGroup; ++l) {
    float kept[Formula::kElementColumns + 1] = {};
    for (int c = 0; c < Formula::kElementColumns; ++c) kept[c] = states[c][l];
    formula.element(weights[l], kept, gradients[l], of_row);
    for (int c = 0; c < Formula::kElementColumns; ++c) states[c][l] = kept[c];
  }
  std::copy_n(weights, count, weight);
  for (int c = 0; c < Formula::kElementColumns; ++c) std::copy_n(states[c], count, state + c * dim);
}

/// Elements [0, count) of a row whose state columns are `dim` floats apart.
template <class Formula>
HWY_INLINE void update_elements(const Formula& formula, float* weight, float* state,
                                const float* gradient, const float* factors, int64_t count,
                                int64_t dim) {
  int64_t e = 0;
  for (; e + kGroup <= count; e += kGroup)
    update_group(formula, weight + e, state + e, gradient + e, factors, kGroup, dim);
  if (e < count)
    update_group(formula, weight + e, state + e, gradient + e, factors, count - e, dim);
}

/// Rows of kDim elements that are side by side in a group; 0: a row does not fit, or is no part.
template <int64_t kDim>
constexpr int64_t kRowsOfGroup = kDim > 0 && kDim < kGroup&& kGroup % kDim == 0 ? kGroup / kDim : 0;

/// Rows [begin, begin + count) of the range, at most kRowsOfGroup<kDim>; factors [count][kFactors].
template <int64_t kDim, class Formula>
HWY_INLINE void update_rows_of_group(const Formula& formula, const ApplyRange& range, int64_t begin,
                                     int64_t count, const float* factors) {
  constexpr int kColumns = Formula::kElementColumns, kFactors = Formula::kFactors;
  float weights[kGroup] = {}, gradients[kGroup] = {};
  float states[kColumns + 1][kGroup] = {}, spread[kFactors + 1][kGroup] = {};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t slot = range.slots[begin + i];
    std::copy_n(reinterpret_cast<const float*>(range.rows.record(slot)), kDim, weights + i * kDim);
    std::copy_n(range.gradients + (begin + i) * kDim, kDim, gradients + i * kDim);
    for (int f = 0; f < kFactors; ++f)
      std::fill_n(spread[f] + i * kDim, kDim, factors[i * kFactors + f]);
    for (int c = 0; c < kColumns; ++c)
      std::copy_n(range.rows.state(slot) + c * kDim, kDim, states[c] + i * kDim);
  }
  for (int64_t l = 0; l < kGroup; ++l) {
    float kept[kColumns + 1] = {}, of_row[kFactors + 1] = {};
    for (int c = 0; c < kColumns; ++c) kept[c] = states[c][l];
    for (int f = 0; f < kFactors; ++f) of_row[f] = spread[f][l];
    formula.element(weights[l], kept, gradients[l], of_row);
    for (int c = 0; c < kColumns; ++c) states[c][l] = kept[c];
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t slot = range.slots[begin + i];
    std::copy_n(weights + i * kDim, kDim, reinterpret_cast<float*>(range.rows.record(slot)));
    for (int c = 0; c < kColumns; ++c)
      std::copy_n(states[c] + i * kDim, kDim, range.rows.state(slot) + c * kDim);
  }
}

/// The sums of squares of `count` rows of kDim elements, at most kGroup: in lanes of which those
/// from kDim on stay +0, so that a narrow row's are added pairwise at once.
template <int64_t kDim>
HWY_INLINE void sums_of_squares(const float* gradients, int64_t count, float* squares) {
  if constexpr (kRowsOfGroup < kDim >> 0) {
    float values[kDim][kGroup] = {};
    for (int64_t i = 0; i < count; ++i)
      for (int64_t e = 0; e < kDim; ++e) values[e][i] = gradients[i * kDim + e];
    for (int64_t e = 0; e < kDim; ++e)
      for (int64_t i = 0; i < kGroup; ++i) values[e][i] = values[e][i] * values[e][i];
    for (int64_t half = kDim / 2; half > 0; half /= 2)
      for (int64_t e = 0; e < half; ++e)
        for (int64_t i = 0; i < kGroup; ++i) values[e][i] = values[e][i] + values[e + half][i];
    std::copy_n(values[0], kGroup, squares);
  } else {
    for (int64_t i = 0; i < count; ++i) squares[i] = sum_of_squares(gradients + i * kDim, kDim);
  }
}

/// The factors [kGroup][kFactors] of rows [begin, begin + count) of the range, at most kGroup;
/// keeps their state.
template <int64_t kDim, class Formula>
HWY_INLINE void update_row_states(const Formula& formula, const ApplyRange& range, int64_t begin,
                                  int64_t count, float* factors) {
  const int64_t dim = kDim > 0 ? kDim : range.rows.dim;
  constexpr int kFactors = Formula::kFactors;
  float* const kept = range.rows.row_state;
  const int64_t* const slots = range.slots + begin;
  float states[kGroup] = {}, squares[kGroup] = {};
  if (range.mean_squares != nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      formula.row(kept[slots[i]], range.mean_squares[begin + i], factors + i * kFactors);
    }
    return;
  }
  if constexpr (kDim > 0) {
    sums_of_squares<kDim>(range.gradients + begin * kDim, count, squares);
  } else {
    for (int64_t i = 0; i < count; ++i)
      squares[i] = sum_of_squares(range.gradients + (begin + i) * dim, dim);
  }
  for (int64_t i = 0; i < count; ++i) states[i] = kept[slots[i]];
  for (int64_t i = 0; i < kGroup; ++i) {
    formula.row(states[i], squares[i] / static_cast<float>(dim), factors + i * kFactors);
  }
  for (int64_t i = 0; i < count; ++i) kept[slots[i]] = states[i];
}

/// A row of 16-bit weights: through float32, a chunk at a time, rounded stochastically.
template <class Store, class Formula>
void update_half_row(const Formula& formula, const ApplyRange& range, int64_t i,
                     const float* factors) {
  constexpr int64_t kChunk = 64;
  const RowStorage& rows = range.rows;
  const int64_t slot = range.slots[i];
  const auto key = static_cast<uint64_t>(range.keys[i]);
  const Random& rounding = range.roundings == nullptr ? range.rounding : range.roundings[i];
  std::byte* record = rows.record(slot);
  float weights[kChunk];
  for (int64_t begin = 0; begin < rows.dim; begin += kChunk) {
    const int64_t count = std::min(kChunk, rows.dim - begin);
    for (int64_t e = 0; e < count; ++e) weights[e] = weight_value(rows, slot, begin + e);
    update_elements(formula, weights, rows.state(slot) + begin,
                    range.gradients + i * rows.dim + begin, factors, count, rows.dim);
    std::array<uint32_t, 4> words{};
    for (int64_t e = 0; e < count; ++e) {
      if (e % 4 == 0) words = rounding.block(key, (range.first_element + begin + e) / 4);
      Store::store_stochastically(record, begin + e, weights[e], words[e % 4]);
    }
  }
}

struct BFloat16Store {
  static void store_stochastically(std::byte* record, int64_t e, float value, uint32_t word) {
    reinterpret_cast<BFloat16*>(record)[e] = round_stochastically_to_bfloat16(value, word);
  }
};
struct Float16Store {
  static void store_stochastically(std::byte* record, int64_t e, float value, uint32_t word) {
    reinterpret_cast<Float16*>(record)[e] = round_stochastically_to_float16(value, word);
  }
};

/// Fetches what an update of row i of the range will need.
HWY_INLINE void fetch(const ApplyRange& range, int64_t i) {
  const int64_t slot = range.slots[i];
  const std::byte* record = range.rows.record(slot);
  for (int64_t at = 0; at < range.rows.stride; at += 64) __builtin_prefetch(record + at, 1);
  if (range.rows.row_state != nullptr) __builtin_prefetch(range.rows.row_state + slot, 1);
}

/// Calls update(i, n, factors) for rows i ... i + n - 1 of the range, n at most kTogether, a
/// divisor of kGroup. kDim: the dimension where it is known to the compiler, else 0.
template <int64_t kDim, int64_t kTogether, class Formula, class UpdateRows>
HWY_INLINE void apply_to_each(const ApplyRange& range, const Formula& formula,
                              const UpdateRows& update) {
  const int64_t ahead = std::clamp<int64_t>(kFetchBytes / range.rows.stride, 4, 32);
  const int64_t fetched = range.count + range.following;
  constexpr int kFactors = Formula::kFactors;
  for (int64_t begin = 0; begin < range.count; begin += kGroup) {
    const int64_t count = std::min(kGroup, range.count - begin);
    float factors[kGroup * (kFactors > 0 ? kFactors : 1)] = {};
    if constexpr (Formula::kRowState)
      update_row_states<kDim>(formula, range, begin, count, factors);
    for (int64_t i = begin; i < begin + count; i += kTogether) {
      const int64_t end = std::min(i + kTogether, begin + count);
      for (int64_t next = i + ahead; next < std::min(end + ahead, fetched); ++next)
        fetch(range, next);
      update(i, end - i, factors + (i - begin) * kFactors);
    }
  }
}

template <int64_t kDim, class Formula>
void apply_float_rows(const ApplyRange& range, const Formula& formula) {
  const RowStorage& rows = range.rows;
  const int64_t dim = kDim > 0 ? kDim : rows.dim;
  if constexpr (kRowsOfGroup < kDim >> 0) {
    apply_to_each<kDim, kRowsOfGroup<kDim>>(
        range, formula, [&](int64_t i, int64_t n, const float* factors) {
          update_rows_of_group<kDim>(formula, range, i, n, factors);
        });
  } else {
    apply_to_each<kDim, 1>(range, formula, [&](int64_t i, int64_t, const float* factors) {
      const int64_t slot = range.slots[i];
      update_elements(formula, reinterpret_cast<float*>(rows.record(slot)), rows.state(slot),
                      range.gradients + i * dim, factors, dim, dim);
    });
  }
}

template <class Store, class Formula>
void apply_half_rows(const ApplyRange& range, const Formula& formula) {
  apply_to_each<0, 1>(range, formula, [&](int64_t i, int64_t, const float* factors) {
    update_half_row<Store>(formula, range, i, factors);
  });
}

/// The range's gradients [count][dim] with L2.
inline std::vector<float> gradients_with_l2(const ApplyRange& range) {
  const int64_t dim = range.rows.dim;
  std::vector<float> gradients(range.gradients, range.gradients + range.count * dim);
  std::vector<float> weights(dim);
  for (int64_t i = 0; i < range.count; ++i) {
    for (int64_t e = 0; e < dim; ++e) weights[e] = weight_value(range.rows, range.slots[i], e);
    float* const row = gradients.data() + i * dim;
    for (int64_t e = 0; e < dim; ++e) row[e] = with_l2(row[e], weights[e], range.l2);
  }
  return gradients;
}

template <class Formula>
void apply_rows(const ApplyRange& range, const Formula& formula) {
  if (range.l2 != 0.0f) {
    const std::vector<float> gradients = gradients_with_l2(range);
    ApplyRange of = range;
    of.gradients = gradients.data();
    of.l2 = 0.0f;
    return apply_rows(of, formula);
  }
  switch (range.rows.precision) {
    case RowPrecision::bfloat16:
      return apply_half_rows<BFloat16Store>(range, formula);
    case RowPrecision::float16:
      return apply_half_rows<Float16Store>(range, formula);
    case RowPrecision::float32:
      break;
  }
  switch (range.rows.dim) {
    case 4:
      return apply_float_rows<4>(range, formula);
    case 8:
      return apply_float_rows<8>(range, formula);
    case 16:
      return apply_float_rows<16>(range, formula);
    case 32:
      return apply_float_rows<32>(range, formula);
    case 64:
      return apply_float_rows<64>(range, formula);
    case 128:
      return apply_float_rows<128>(range, formula);
    default:
      return apply_float_rows<0>(range, formula);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#endif
