// SPDX-License-Identifier: Apache-2.0
// Rows of several places brought to others, as many bytes at a time as all of them allow.
#pragma once

#include "device/kernel.cuh"
#include "kernels/embedding_pool/cuda_rows.cuh"
#include "kernels/row_copy/gpu_row_copy_arguments.h"

namespace recmill::kernels::gpu {

struct CopyRows {
  RECMILL_DEVICE static void run(const RowCopyArguments& arguments) {
    const i64 block = blockIdx.x;
    int c = 0;
    while (block >= arguments.end_block[c]) ++c;
    const RowCopy& copy = arguments.copies[c];
    const i64 of_block = copied_rows_of_block(copy.dim);
    const i64 first = (block - (c == 0 ? 0 : arguments.end_block[c - 1])) * of_block;
    const i64 rows = copy.rows - first < of_block ? copy.rows - first : of_block;
    const float* const from = copy.from + first * copy.from_stride;
    float* const to = copy.to + first * copy.to_stride;
    if (is_by_fours(copy)) {
      copy_rows<4>(copy, from, to, static_cast<u32>(rows));
    } else {
      copy_rows<1>(copy, from, to, static_cast<u32>(rows));
    }
  }

 private:
  RECMILL_DEVICE static bool is_by_fours(const RowCopy& copy) {
    const u64 places = reinterpret_cast<u64>(copy.from) | reinterpret_cast<u64>(copy.to);
    return places % 16 == 0 && ((copy.from_stride | copy.to_stride | copy.dim) & 3) == 0;
  }

  template <int kLanes>
  RECMILL_DEVICE static void copy_rows(const RowCopy& copy, const float* from, float* to,
                                       u32 rows) {
    using Lanes = FloatLanes<kLanes>;
    const u32 of_row = static_cast<u32>(copy.dim / kLanes), count = rows * of_row;
    for (u32 i = threadIdx.x; i < count; i += kCopyThreads) {
      const i64 row = i / of_row, at = i64{i - static_cast<u32>(row) * of_row} * kLanes;
      *reinterpret_cast<Lanes*>(to + row * copy.to_stride + at) =
          *reinterpret_cast<const Lanes*>(from + row * copy.from_stride + at);
    }
  }
};

}  // namespace recmill::kernels::gpu
