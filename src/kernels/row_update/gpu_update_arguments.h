// SPDX-License-Identifier: Apache-2.0
// What the blocks of a fused row update are given.
#pragma once

#include "device/kernel_types.h"
#include "kernels/distinct_rows/gpu_distinct_arguments.h"

namespace recmill::kernels::gpu {

constexpr int kUpdateThreads = 256;  // of a block
constexpr int kRowThreads = 16;      // of a row: the lanes of its mean of squares

constexpr int kMostLevels = 10;  // of the tree over shards, of which there are 1,024 at most

/// Rows of a block: as many as it has threads for, but of shared memory not more than 16 KiB.
constexpr int rows_of_update_block(int dim) {
  const int most = 16 * 1024 / 4 / dim, all = kUpdateThreads / kRowThreads;
  return most < 1 ? 1 : most < all ? most : all;
}

/// kernels::GradientRows, on a GPU.
struct Gradients {
  const float* data;
  i64 stride;  // floats
};

/// One table's part of an iteration; all pointers are of the device.
struct UpdateTable {
  u8* records;                 // RowStorage: data
  float* row_state;            // [slots]
  FoundRows found;             // what is updated; rounding is keyed by its rows
  const i64* slots;            // beside its rows: where they stand
  const Gradients* gradients;  // [features of the table]
  u64 shards;                  // of the global batch, a power of two
  u64 rounding_key;            // Random::key() of this table and iteration
  i64 schedule;                // place in the fused kernel
  alignas(8) u8 formula[32];   // the optimizer's, as of this iteration
};

/// A block's part: rows [part * rows of a block, ...) of a table, which may be beyond the last.
struct UpdateBlock {
  i32 table;
  i32 part;
};

struct UpdateArguments {
  const UpdateTable* tables;
  const UpdateBlock* blocks;  // [blocks of the grid]
};

}  // namespace recmill::kernels::gpu
