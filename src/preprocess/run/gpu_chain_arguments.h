// SPDX-License-Identifier: Apache-2.0
// What the kernel that runs chains of ops is given. Read by the compilers of kernels too.
#pragma once

#include "device/kernel_types.h"
#include "preprocess/ops/gpu_op.h"

namespace recmill::preprocess {

constexpr int kChainThreads = 256;    // of a block
constexpr int kGpuTileSamples = 256;  // of a block

/// One chain and its columns of a batch; all pointers are of the device.
struct GpuChain {
  const GpuOp* ops;  // on dense values, into buckets, on bags, on ids: so many of each
  i32 dense_ops, bucket_ops, bag_ops, id_ops;
  // What goes in: values, or bags.
  const float* values;    // [samples], or null
  const i64* in_offsets;  // [samples + 1]; in_offsets[0] is that of ids[0]
  const u64* ids;
  const float* in_weights;  // beside ids, or null: all 1
  // What comes out: dense values, or rows.
  float* dense;                // of sample 0, or null
  i64 dense_stride;            // from sample to sample
  FlattenedCounts* flattened;  // [dense_ops], of all samples as values: is counted on; or null
  const i64* offsets;          // [samples + 1], into rows; null: bag s is id s, in what goes in too
  u64* rows;
  float* weights;    // beside rows, or null
  IdCounts* counts;  // is added to
};

/// Samples [part * kGpuTileSamples, ...) of a chain, for one block.
struct ChainTile {
  i32 chain, part;
};

struct ChainArguments {
  const GpuChain* chains;
  const ChainTile* tiles;  // [blocks]
  i64 samples;
};

}  // namespace recmill::preprocess
