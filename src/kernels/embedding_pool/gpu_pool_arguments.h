// SPDX-License-Identifier: Apache-2.0
// What the blocks of a fused embedding_pool are given (RecFlex, section IV-B): arguments by an
// array of structs, and the mapping of blocks, made from the actual batch.
#pragma once

#include "device/kernel_types.h"

namespace recmill::kernels::gpu {

constexpr int kBlockThreads = 256;
constexpr i64 kRun = 64;  // kPoolRun: lookups folded before they join the bag's total

/// One feature of a batch; all pointers are of the device.
struct PoolFeature {
  const i64* offsets;  // [samples + 1], into lookups
  const i64* lookups;  // slots of rows
  const float* weights;
  const u8* rows;  // of slot 0
  i64 samples;
  float* run_sums;  // of schedules of several blocks a sample: [lookups / kRun + samples][dim]
  u32* arrivals;    // beside: [samples], zeros before and after
  i64 schedule;     // place in the fused kernel
  // Of rows in two memories: where slots from `near` on begin.
  const u8* far;
  i64 near;
};

/// Where a feature's rows go; of the device. As EmbeddingStore's FeatureOutput.
struct PoolOutput {
  float* data;
  i64 stride;  // floats
};

/// What a block of the grid works on: the `part`-th part of a feature's samples, as its schedule
/// cuts them, or piece `piece` of `pieces` of it where the schedule has several blocks for one
/// part.
struct PoolBlock {
  i32 feature;
  i32 part;
  i32 piece;
  i32 pieces;
};

struct PoolArguments {
  const PoolFeature* features;
  const PoolOutput* outputs;  // [features]
  const PoolBlock* blocks;    // [blocks of the grid], or [begins.back()]
  const i64* begins;          // [blocks of the grid + 1], of kernels whose blocks have several
  i64* clocks;                // [blocks of the grid], of kernels that are timed: what each took
};

}  // namespace recmill::kernels::gpu
