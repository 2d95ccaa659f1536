// SPDX-License-Identifier: Apache-2.0
// Rows of a table and their weights as a GPU's threads read them.
#pragma once

#include "device/kernel.cuh"

namespace recmill::kernels::gpu {

// One weight, by how it is stored. float16 and bfloat16 widen exactly.
struct Float32 {
  using Stored = float;
  RECMILL_DEVICE static float widen(float stored) { return stored; }
};
struct BFloat16 {
  using Stored = u16;
  RECMILL_DEVICE static float widen(u16 stored) { return __uint_as_float(u32{stored} << 16); }
};
struct Float16 {
  using Stored = u16;
  RECMILL_DEVICE static float widen(u16 stored) { return recmill::float16_value(stored); }
};

/// kLanes consecutive weights, fetched by one instruction where their place allows it.
template <class Weight, int kLanes>
struct alignas(sizeof(typename Weight::Stored) * kLanes) StoredLanes {
  typename Weight::Stored lane[kLanes];
};

/// to = elements [element, element + kLanes) of the row at `row`, which are at a multiple of
/// their own size.
template <class Weight, int kLanes>
RECMILL_DEVICE void load_lanes(const u8* row, int element, float (&to)[kLanes]) {
  using Stored = typename Weight::Stored;
  const auto* from = reinterpret_cast<const StoredLanes<Weight, kLanes>*>(
      row + static_cast<i64>(element) * static_cast<i64>(sizeof(Stored)));
  const StoredLanes<Weight, kLanes> stored = *from;
  RECMILL_UNROLL
  for (int lane = 0; lane < kLanes; ++lane) to[lane] = Weight::widen(stored.lane[lane]);
}

/// kLanes floats, moved by one instruction where their place allows it.
template <int kLanes>
struct alignas(4 * kLanes) FloatLanes {
  float lane[kLanes];
};

/// to = kLanes floats at `from`, whose place may be any.
template <int kLanes>
RECMILL_DEVICE void read_lanes(const float* from, float (&to)[kLanes]) {
  if (reinterpret_cast<u64>(from) % (4 * kLanes) == 0) {
    const FloatLanes<kLanes> lanes = *reinterpret_cast<const FloatLanes<kLanes>*>(from);
    RECMILL_UNROLL
    for (int lane = 0; lane < kLanes; ++lane) to[lane] = lanes.lane[lane];
  } else {
    RECMILL_UNROLL
    for (int lane = 0; lane < kLanes; ++lane) to[lane] = from[lane];
  }
}

/// Writes kLanes floats at `to`, whose place may be any.
template <int kLanes>
RECMILL_DEVICE void store_lanes(float* to, const float (&values)[kLanes]) {
  if (reinterpret_cast<u64>(to) % (4 * kLanes) == 0) {
    FloatLanes<kLanes> lanes;
    RECMILL_UNROLL
    for (int lane = 0; lane < kLanes; ++lane) lanes.lane[lane] = values[lane];
    *reinterpret_cast<FloatLanes<kLanes>*>(to) = lanes;
  } else {
    RECMILL_UNROLL
    for (int lane = 0; lane < kLanes; ++lane) to[lane] = values[lane];
  }
}

}  // namespace recmill::kernels::gpu
