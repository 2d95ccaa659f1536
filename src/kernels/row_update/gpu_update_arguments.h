// SPDX-License-Identifier: Apache-2.0
// What the blocks of a fused row update are given.
#pragma once

#include "device/kernel_types.h"
#include "kernels/distinct_rows/gpu_distinct_arguments.h"

namespace recmill::kernels::gpu {

constexpr int kUpdateThreads = 256;  // of a block, and its rows
constexpr int kSquareSums = 16;      // into which a row's mean of squares is added up first
constexpr i64 kListedRow = 32;       // lookups, beyond which a row does not wait for its neighbours

constexpr int kMostLevels = 10;  // of the tree over slices, of which there are 1,024 at most

/// Neighbouring elements of a thread: as many as each row has whole, where they can be fetched at
/// once.
constexpr int lanes_of_update(i64 dim, i64 record_bytes, i64 element_state, i64 weight_bytes) {
  int lanes = 4;
  while (lanes > 1 && (dim % lanes != 0 || record_bytes % (lanes * weight_bytes) != 0 ||
                       element_state % (lanes * 4) != 0))
    lanes /= 2;
  return lanes;
}

/// Threads of a row: part of a warp, or a warp.
constexpr int threads_of_row(i64 dim, int lanes) {
  int threads = 4;
  while (threads < 32 && threads * lanes < dim) threads *= 2;
  return threads;
}

/// Whether rows of an optimizer that looks at the whole gradient first are too wide for a warp, of
/// which a block has no memory for as many as it has warps: they are blocks'.
constexpr bool too_wide_for_warps(bool has_row_state, i64 dim) {
  return has_row_state && dim > 1024;
}

/// kernels::GradientRows, on a GPU: data is a multiple of 16 bytes, stride of lanes_of_update().
struct Gradients {
  const float* data;
  i64 stride;  // floats
};

/// One table's part of an iteration; all pointers are of the device.
struct UpdateTable {
  u8* records;                 // RowStorage: data, of slot 0
  float* row_state;            // [slots]
  FoundRows found;             // what is updated
  const i64* slots;            // beside its rows: where they are
  const i64* row_of_slot;      // that rounding is keyed by; null: by the rows that were found
  const Gradients* gradients;  // [features of the table]
  u64 slices;                  // of the global batch, a power of two
  u64 rounding_key;            // Random::key() of this table and iteration
  i64 long_row;                // lookups, beyond which a row is a block's
  i64 schedule;                // place in the fused kernel
  float l2;                    // with_l2.h
  alignas(8) u8 formula[48];   // the optimizer's, as of this iteration
  // Of rows in two memories: where slots from `near` on begin. These are their rows' numbers, and
  // row_of_slot has those of the others.
  u8* far_records;
  float* far_row_state;
  i64 near;
};

/// Rows [part * kUpdateThreads, ...) of a table, which may be beyond the last.
struct UpdateBlock {
  i32 table;
  i32 part;
};

/// A row that is listed.
struct ListedRow {
  i32 table;
  i32 row;
};

/// How far a launch is, from zero.
struct UpdateProgress {
  u32 long_rows, other_rows, blocks;      // that are listed
  u32 long_rows_taken, warps_work_taken;  // so far
};

/// Rows that are not updated with their neighbours, in any order: of the first `room` the long ones
/// are at the front, others at the back, from the last on. Behind these the first row of each
/// block that has any.
struct ListedRows {
  ListedRow* rows;  // [room + blocks]
  i64 room;
};

/// Of a kernel that is run twice: first it lists rows with many lookups and blocks that have rows,
/// then it updates all: the listed rows first, so that none is begun when everything else is done.
/// Blocks take the long rows, warps the others and then, 32 by 32, those that are not listed, each
/// what comes next when it begins with what it has.
struct UpdateArguments {
  const UpdateTable* tables;
  const UpdateBlock* blocks;  // [block_count]
  i64 block_count;
  ListedRows listed;
  UpdateProgress* progress;
  i32 is_listing;
};

}  // namespace recmill::kernels::gpu
