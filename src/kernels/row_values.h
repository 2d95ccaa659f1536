// SPDX-License-Identifier: Apache-2.0
// Single weights of stored rows: what references and cold paths read and write.
#pragma once

#include <cstdint>

#include "base/bfloat16.h"
#include "kernels/row_storage.h"

namespace recmill::kernels {

/// Weight `element` of the record in `slot` as float32: exact for every precision.
inline float weight_value(const RowStorage& rows, int64_t slot, int64_t element) {
  const std::byte* record = rows.record(slot);
  switch (rows.precision) {
    case RowPrecision::bfloat16:
      return to_float(reinterpret_cast<const BFloat16*>(record)[element]);
    case RowPrecision::float16:
      return to_float(reinterpret_cast<const Float16*>(record)[element]);
    case RowPrecision::float32:
      break;
  }
  return reinterpret_cast<const float*>(record)[element];
}

/// Stores a weight, rounded to nearest where the precision does not hold it.
inline void set_weight(const RowStorage& rows, int64_t slot, int64_t element, float value) {
  std::byte* record = rows.record(slot);
  switch (rows.precision) {
    case RowPrecision::bfloat16:
      reinterpret_cast<BFloat16*>(record)[element] = to_bfloat16(value);
      return;
    case RowPrecision::float16:
      reinterpret_cast<Float16*>(record)[element] = to_float16(value);
      return;
    case RowPrecision::float32:
      reinterpret_cast<float*>(record)[element] = value;
      return;
  }
}

}  // namespace recmill::kernels
