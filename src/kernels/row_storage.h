// SPDX-License-Identifier: Apache-2.0
// Embedding rows in memory, as kernels see them: no owner, no names. Trivially copyable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "schema/table_spec.h"

namespace recmill::kernels {

constexpr int64_t bytes_of(RowPrecision precision) {
  return precision == RowPrecision::float32 ? 4 : 2;
}

/// `count` records of `stride` bytes. A record is dim weights in `precision`, then, at
/// `element_state` bytes, the optimizer's state by element: [columns][dim] float32. State by row
/// is apart, so that a lookup does not read it.
struct RowStorage {
  std::byte* data = nullptr;
  int64_t count = 0;           // records
  int64_t stride = 0;          // bytes from record to record, a multiple of the size of a weight
  int64_t dim = 0;             // weights a row
  int64_t element_state = 0;   // bytes from a record's begin; a multiple of 4
  float* row_state = nullptr;  // [count], or null: the optimizer keeps none
  RowPrecision precision = RowPrecision::float32;

  std::byte* record(int64_t slot) const { return data + slot * stride; }
  float* state(int64_t slot) const {
    return reinterpret_cast<float*>(data + slot * stride + element_state);
  }

  /// Plain float32 rows, e.g. a received buffer: [count][dim].
  static RowStorage of(const float* rows, int64_t count, int64_t dim) {
    RowStorage storage;
    storage.data = reinterpret_cast<std::byte*>(const_cast<float*>(rows));
    storage.count = count;
    storage.stride = dim * 4;
    storage.dim = dim;
    return storage;
  }
};
static_assert(std::is_trivially_copyable_v<RowStorage>);

}  // namespace recmill::kernels
