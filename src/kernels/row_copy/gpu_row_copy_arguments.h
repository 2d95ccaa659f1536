// SPDX-License-Identifier: Apache-2.0
// What the kernel that copies rows is given. Read by the compilers of kernels too; all pointers are
// of the device.
#pragma once

#include "device/kernel_types.h"

namespace recmill::kernels::gpu {

constexpr int kCopyThreads = 256;  // of a block
constexpr int kMostCopies = 60;    // of a launch, whose arguments are 4 KiB at most
constexpr int kCopyFloats = 8192;  // of a block, or one row

/// Rows of `dim` floats, that are so far from each other, in floats.
struct RowCopy {
  const float* from;
  float* to;
  i64 from_stride, to_stride;
  i64 rows;
  i64 dim;
};

struct RowCopyArguments {
  RowCopy copies[kMostCopies];
  i64 end_block[kMostCopies];  // of the launch's blocks: those of each copy follow each other
};
static_assert(sizeof(RowCopyArguments) <= 4096);

/// Of one block.
constexpr i64 copied_rows_of_block(i64 dim) {
  return dim < kCopyFloats ? kCopyFloats / dim : 1;
}

}  // namespace recmill::kernels::gpu
