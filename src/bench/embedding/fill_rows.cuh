// SPDX-License-Identifier: Apache-2.0
// Fills rows with a pattern, a thread a float.
#pragma once

#include "bench/embedding/fill_pattern.h"
#include "device/kernel.cuh"

RECMILL_KERNEL(256, 1) fill_rows(const recmill::bench::FillArguments a) {
  const recmill::i64 at = static_cast<recmill::i64>(blockIdx.x) * blockDim.x + threadIdx.x;
  const recmill::i64 row = at / a.row_floats, element = at % a.row_floats;
  if (row >= a.rows) return;
  a.to[at] = element < a.dim ? recmill::bench::value_of(a.pattern, row, element) : 0.0f;
}
RECMILL_EMULATED_ENTRY(fill_rows, recmill::bench::FillArguments)
