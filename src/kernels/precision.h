// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace recmill::kernels {

/// How the operands of a product are stored; sums are float32 in both.
enum class Precision { float32, bfloat16 };

constexpr int64_t bytes_of(Precision precision) {
  return precision == Precision::float32 ? 4 : 2;
}

}  // namespace recmill::kernels
