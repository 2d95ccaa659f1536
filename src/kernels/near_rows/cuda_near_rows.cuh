// SPDX-License-Identifier: Apache-2.0
// Rows that were made on a GPU become slots; of slots that were found, those of far rows are
// counted.
#pragma once

#include "device/kernel.cuh"
#include "kernels/near_rows/gpu_near_rows_arguments.h"

namespace recmill::kernels::gpu {

struct CountOnes {
  RECMILL_DEVICE int operator()(u32 bits) const { return __popc(bits); }
};

/// A block maps kLookupsOfBlock lookups of one feature.
struct MapRows {
  RECMILL_DEVICE static void run(const MapRowsArguments& arguments) {
    const i64 block = blockIdx.x;
    int f = 0;
    while (block >= arguments.end_block[f]) ++f;
    const MappedFeature& of = arguments.features[f];
    const i64 first = (block - (f == 0 ? 0 : arguments.end_block[f - 1])) * kLookupsOfBlock;
    u32 far = 0;
    for (i64 i = first; i < first + kLookupsOfBlock; i += kNearThreads) {
      const i64 lookup = i + threadIdx.x;
      i64 slot = -1;
      if (lookup < of.lookups) {
        const i64 row = of.rows[lookup];
        slot = slot_of_row(of.lines[row / NearLine::kRows], of.near, row, CountOnes());
        of.slots[lookup] = slot;
      }
      far += static_cast<u32>(__popc(__ballot_sync(0xffffffffu, slot >= of.near ? 1 : 0)));
    }
    if (threadIdx.x % 32 == 0 && far > 0) atomicAdd(arguments.far, u64{far});
  }
};

/// A thread counts a table's.
struct CountFar {
  RECMILL_DEVICE static void run(const CountFarArguments& arguments) {
    if (threadIdx.x >= static_cast<u32>(arguments.count)) return;
    const CountedTable& of = arguments.tables[threadIdx.x];
    const i64 count = *of.count;
    i64 begin = 0, end = count;  // the first far slot is among them, or at the end
    while (begin < end) {
      const i64 middle = (begin + end) / 2;
      if (of.slots[middle] < of.near) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    *of.far = count - begin;
  }
};

}  // namespace recmill::kernels::gpu
