// SPDX-License-Identifier: Apache-2.0
// Sums the gradient of each distinct row, in the one order of summation (gradient_sums.h), and
// applies the row optimizer to it (apply_rows.h): kRowThreads threads a row, thread t elements t, t
// + 16, ...
#pragma once

#include "base/philox.h"
#include "device/std_for_kernels.cuh"
#include "kernels/embedding_pool/cuda_rows.cuh"
#include "kernels/row_update/gpu_update_arguments.h"
#include "kernels/row_update/rounding.h"

namespace recmill::kernels::gpu {

/// What is constant of a table.
template <int kDimension, i64 kBytesOfRecord, i64 kStateAt, class WeightType, class FormulaType>
struct UpdateShape {
  static constexpr int kDim = kDimension;
  static constexpr i64 kRecordBytes = kBytesOfRecord;
  static constexpr i64 kElementState = kStateAt;
  using Weight = WeightType;
  using Formula = FormulaType;
};

// Stores a 16-bit weight, rounded by a random word.
template <class Weight>
RECMILL_DEVICE void store_rounded(u16* to, float value, u32 word);
template <>
RECMILL_DEVICE void store_rounded<BFloat16>(u16* to, float value, u32 word) {
  *to = round_stochastically_to_bfloat16(value, word).bits;
}
template <>
RECMILL_DEVICE void store_rounded<Float16>(u16* to, float value, u32 word) {
  *to = round_stochastically_to_float16(value, word).bits;
}

/// Random::bits() of an item's element.
RECMILL_DEVICE u32 random_word(u64 item, int element, u64 key) {
  const auto words = philox(
      {{static_cast<u32>(item), static_cast<u32>(item >> 32), static_cast<u32>(element) / 4, 0}},
      key);
  const int place = element % 4;  // chosen, not indexed: registers have no addresses
  return place == 0 ? words[0] : place == 1 ? words[1] : place == 2 ? words[2] : words[3];
}

template <class Shape>
struct UpdateRows {
  using Formula = typename Shape::Formula;
  using Weight = typename Shape::Weight;
  using Stored = typename Weight::Stored;
  static constexpr int kRows = rows_of_update_block(Shape::kDim);
  static constexpr int kStates = Formula::kElementColumns;
  struct Shared {
    float gradient[kRows][Shape::kDim];  // each element its thread's own
  };

  RECMILL_DEVICE static void run(const UpdateTable& table, const UpdateBlock& block,
                                 Shared& shared) {
    const int group = static_cast<int>(threadIdx.x) / kRowThreads;
    const int lane = static_cast<int>(threadIdx.x) % kRowThreads;
    const i64 row = static_cast<i64>(block.part) * kRows + group;
    const i64 rows = *table.found.count;
    if (static_cast<i64>(block.part) * kRows >= rows) return;
    const bool works = group < kRows && row < rows;
    float* const gradient = shared.gradient[works ? group : 0];
    float squares = 0.0f;
    for (int e = lane; works && e < Shape::kDim; e += kRowThreads) {
      gradient[e] = sum(table, row, e);
      squares = squares + gradient[e] * gradient[e];
    }
    const Formula& formula = *reinterpret_cast<const Formula*>(table.formula);
    float factor = 0.0f;
    if constexpr (Formula::kRowState) {
      // The lanes pairwise 8, 4, 2, 1; all threads of a warp come by.
      for (int width = kRowThreads / 2; width > 0; width /= 2)
        squares = squares + __shfl_down_sync(0xffffffffu, squares, static_cast<u32>(width), 16);
      if (works && lane == 0)
        factor = formula.row(table.row_state[table.slots[row]],
                             squares / static_cast<float>(Shape::kDim));
      factor = __shfl_sync(0xffffffffu, factor, 0, kRowThreads);
    }
    for (int e = lane; works && e < Shape::kDim; e += kRowThreads)
      apply(table, row, e, gradient[e], factor, formula);
  }

 private:
  /// The gradient of one element of a row: folds over shards, then their tree, as a binary counter.
  RECMILL_DEVICE static float sum(const UpdateTable& table, i64 row, int element) {
    const i64 end = table.found.begins[row + 1];
    i64 at = table.found.begins[row];
    float left[kMostLevels] = {}, part = 0.0f;
    for (u32 shard = 0; shard < table.shards; ++shard) {
      part = 0.0f;
      for (; at < end && table.found.sources[at].shard == shard; ++at)
        part = part + of_lookup(table, at, element);
      bool carries = true;
      RECMILL_UNROLL
      for (int level = 0; level < kMostLevels; ++level) {
        if (!carries) continue;
        carries = (shard >> level & 1u) != 0;
        if (carries) {
          part = left[level] + part;
        } else {
          left[level] = part;
        }
      }
    }
    return part;  // the last shard's, which carries through all levels
  }

  RECMILL_DEVICE static float of_lookup(const UpdateTable& table, i64 at, int element) {
    const Source source = table.found.sources[at];
    const Gradients of = table.gradients[source.feature];
    float value = of.data[static_cast<i64>(source.gradient_row) * of.stride + element];
    if (table.found.counts != nullptr) value = value / table.found.counts[at];
    if (table.found.weights != nullptr) value = table.found.weights[at] * value;
    return value;
  }

  RECMILL_DEVICE static void apply(const UpdateTable& table, i64 row, int element, float gradient,
                                   float factor, const Formula& formula) {
    u8* const record = table.records + table.slots[row] * Shape::kRecordBytes;
    Stored* const stored = reinterpret_cast<Stored*>(record) + element;
    float* const states = reinterpret_cast<float*>(record + Shape::kElementState) + element;
    float weight = Weight::widen(*stored);
    float state[kStates + 1] = {};
    RECMILL_UNROLL
    for (int c = 0; c < kStates; ++c) state[c] = states[c * Shape::kDim];
    formula.element(weight, state, gradient, factor);
    RECMILL_UNROLL
    for (int c = 0; c < kStates; ++c) states[c * Shape::kDim] = state[c];
    if constexpr (sizeof(Stored) == 4) {
      *stored = weight;
    } else {
      const u64 key = static_cast<u64>(table.found.rows[row]);
      store_rounded<Weight>(stored, weight, random_word(key, element, table.rounding_key));
    }
  }
};

}  // namespace recmill::kernels::gpu
