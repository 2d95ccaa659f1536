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

#include "kernels/row_lanes-inl.h"
#include "kernels/row_update/apply_rows.h"
#include "kernels/row_update/rounding.h"
#include "kernels/row_values.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

constexpr int64_t kSquareLanes = 16;

/// Adds 16 lanes pairwise 8, 4, 2, 1.
HWY_INLINE float add_lanes(const float* lanes) {
  float eight[8], four[4];
  for (int l = 0; l < 8; ++l) eight[l] = lanes[l] + lanes[l + 8];
  for (int l = 0; l < 4; ++l) four[l] = eight[l] + eight[l + 4];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

HWY_INLINE float mean_square(const float* gradient, int64_t dim) {
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
  alignas(64) float lanes[kSquareLanes];
  for (int64_t p = 0; p < kParts; ++p) hn::Store(sums[p], kFloats, lanes + p * kLanes);
  for (int64_t l = 0; e < dim; ++e, ++l) lanes[l] = lanes[l] + gradient[e] * gradient[e];
  return add_lanes(lanes) / static_cast<float>(dim);
}

/// Elements [0, count) of a row whose state columns are `dim` floats apart.
template <class Formula>
HWY_INLINE void update_elements(const Formula& formula, float* __restrict weight,
                                float* __restrict state, const float* __restrict gradient,
                                float factor, int64_t count, int64_t dim) {
  for (int64_t e = 0; e < count; ++e) {
    float kept[Formula::kElementColumns + 1] = {};
    for (int c = 0; c < Formula::kElementColumns; ++c) kept[c] = state[c * dim + e];
    formula.element(weight[e], kept, gradient[e], factor);
    for (int c = 0; c < Formula::kElementColumns; ++c) state[c * dim + e] = kept[c];
  }
}

/// A row of 16-bit weights: through float32, a chunk at a time, rounded stochastically.
template <class Store, class Formula>
void update_half_row(const Formula& formula, const ApplyRange& range, int64_t i, float factor) {
  constexpr int64_t kChunk = 64;
  const RowStorage& rows = range.rows;
  const int64_t slot = range.slots[i];
  const auto key = static_cast<uint64_t>(range.keys[i]);
  std::byte* record = rows.record(slot);
  float weights[kChunk];
  for (int64_t begin = 0; begin < rows.dim; begin += kChunk) {
    const int64_t count = std::min(kChunk, rows.dim - begin);
    for (int64_t e = 0; e < count; ++e) weights[e] = weight_value(rows, slot, begin + e);
    update_elements(formula, weights, rows.state(slot) + begin,
                    range.gradients + i * rows.dim + begin, factor, count, rows.dim);
    std::array<uint32_t, 4> words{};
    for (int64_t e = 0; e < count; ++e) {
      if (e % 4 == 0) words = range.rounding.block(key, (begin + e) / 4);
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

/// kDim: the dimension where it is known to the compiler, else 0.
template <int64_t kDim, class Formula>
void apply_float_rows(const ApplyRange& range, const Formula& formula) {
  const RowStorage& rows = range.rows;
  const int64_t dim = kDim > 0 ? kDim : rows.dim;
  for (int64_t i = 0; i < range.count; ++i) {
    const int64_t slot = range.slots[i];
    const float* gradient = range.gradients + i * dim;
    float factor = 0.0f;
    if constexpr (Formula::kRowState)
      factor = formula.row(rows.row_state[slot], mean_square(gradient, dim));
    update_elements(formula, reinterpret_cast<float*>(rows.record(slot)), rows.state(slot),
                    gradient, factor, dim, dim);
  }
}

template <class Store, class Formula>
void apply_half_rows(const ApplyRange& range, const Formula& formula) {
  const RowStorage& rows = range.rows;
  for (int64_t i = 0; i < range.count; ++i) {
    float factor = 0.0f;
    if constexpr (Formula::kRowState)
      factor = formula.row(rows.row_state[range.slots[i]],
                           mean_square(range.gradients + i * rows.dim, rows.dim));
    update_half_row<Store>(formula, range, i, factor);
  }
}

template <class Formula>
void apply_rows(const ApplyRange& range, const Formula& formula) {
  switch (range.rows.precision) {
    case RowPrecision::bfloat16:
      return apply_half_rows<BFloat16Store>(range, formula);
    case RowPrecision::float16:
      return apply_half_rows<Float16Store>(range, formula);
    case RowPrecision::float32:
      break;
  }
  switch (range.rows.dim) {
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
