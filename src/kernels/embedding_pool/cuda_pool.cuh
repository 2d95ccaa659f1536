// SPDX-License-Identifier: Apache-2.0
// The order in which a GPU's threads sum bags.
#pragma once

#include "kernels/embedding_pool/cuda_rows.cuh"
#include "kernels/embedding_pool/gpu_pool_arguments.h"

namespace recmill::kernels::gpu {

/// A feature and where its rows go.
struct PoolTarget : PoolFeature {
  PoolOutput out;
};

enum class PoolKind { sum, mean, none };

/// What is constant of a feature: a schedule's body is made for it.
template <int kDimension, i64 kBytesOfRow, class WeightType, bool kHasWeights, PoolKind kPoolKind,
          bool kInTwoMemories = false>
struct PoolShape {
  static constexpr int kDim = kDimension;
  static constexpr i64 kRowBytes = kBytesOfRow;
  using Weight = WeightType;
  static constexpr bool kWeighted = kHasWeights;
  static constexpr PoolKind kPooling = kPoolKind;
  static constexpr bool kTwoMemories = kInTwoMemories;
};

/// The lookups of a feature at kLanes elements of their rows.
template <class Shape, int kLanes>
struct Lookups {
  const PoolTarget& feature;

  /// to = the row of `lookup`, weighted.
  RECMILL_DEVICE void load(i64 lookup, int element, float (&to)[kLanes]) const {
    load_lanes<typename Shape::Weight>(row_of(feature.lookups[lookup]), element, to);
    if constexpr (Shape::kWeighted) {
      const float weight = feature.weights[lookup];
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) to[lane] = weight * to[lane];
    }
  }

  RECMILL_DEVICE const u8* row_of(i64 slot) const {
    if constexpr (Shape::kTwoMemories)
      if (slot >= feature.near) return feature.far + (slot - feature.near) * Shape::kRowBytes;
    return feature.rows + slot * Shape::kRowBytes;
  }

  /// sum = sum + lookups [begin, end), each `step` after the one before, kAtOnce of them on their
  /// way at a time, added one after the other.
  template <int kAtOnce>
  RECMILL_DEVICE void add(i64 begin, i64 end, i64 step, int element, float (&sum)[kLanes]) const {
    i64 j = begin;
    for (; j + (kAtOnce - 1) * step < end; j += kAtOnce * step) {
      float rows[kAtOnce][kLanes];
      RECMILL_UNROLL
      for (int i = 0; i < kAtOnce; ++i) load(j + i * step, element, rows[i]);
      RECMILL_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        RECMILL_UNROLL
        for (int lane = 0; lane < kLanes; ++lane) sum[lane] = sum[lane] + rows[i][lane];
      }
    }
    for (; j < end; j += step) {
      float row[kLanes];
      load(j, element, row);
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) sum[lane] = sum[lane] + row[lane];
    }
  }

  /// total = the bag [begin, end) in the contract's order: runs folded, their sums folded.
  template <int kAtOnce>
  RECMILL_DEVICE void pool(i64 begin, i64 end, int element, float (&total)[kLanes]) const {
    RECMILL_UNROLL
    for (int lane = 0; lane < kLanes; ++lane) total[lane] = 0.0f;
    for (i64 run = begin; run < end; run += kRun) {
      float sum[kLanes] = {};
      add<kAtOnce>(run, min(run + kRun, end), 1, element, sum);
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) total[lane] = total[lane] + sum[lane];
    }
  }

  /// Writes the total of sample's bag [begin, end), divided for a mean.
  RECMILL_DEVICE void finish(i64 sample, i64 begin, i64 end, int element,
                             float (&total)[kLanes]) const {
    if constexpr (Shape::kPooling == PoolKind::mean) {
      if (end - begin > 1) {
        RECMILL_UNROLL
        for (int lane = 0; lane < kLanes; ++lane)
          total[lane] = total[lane] / static_cast<float>(end - begin);
      }
    }
    store_lanes(feature.out.data + sample * feature.out.stride + element, total);
  }
};

}  // namespace recmill::kernels::gpu
