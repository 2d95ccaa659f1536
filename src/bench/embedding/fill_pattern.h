// SPDX-License-Identifier: Apache-2.0
// What rows and gradients of the benchmarks on GPUs begin with.
#pragma once

#include "device/kernel_types.h"

namespace recmill::bench {

/// Values that float32 has exactly, so that whoever computes them has the same.
struct FillPattern {
  i64 by_row;
  i64 by_element;
  i64 modulus;
  i64 less;
  float scale;
};

constexpr float value_of(const FillPattern& pattern, i64 row, i64 element) {
  const i64 number = (row * pattern.by_row + element * pattern.by_element) % pattern.modulus;
  return static_cast<float>(number - pattern.less) * pattern.scale;
}

struct FillArguments {
  float* to;
  i64 rows;
  i64 row_floats;  // from row to row
  i64 dim;         // floats of a row that the pattern is for; behind them zeros
  FillPattern pattern;
};

}  // namespace recmill::bench
