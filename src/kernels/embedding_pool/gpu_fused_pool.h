// SPDX-License-Identifier: Apache-2.0
// embedding_pool on a GPU: all features of a batch by the fused kernels that were compiled for
// their schedules, each block of the grid mapped from the actual bags (RecFlex, section IV-B).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batch/sparse_batch.h"
#include "device/gpu/gpu.h"
#include "device/gpu/staged_arrays.h"
#include "kernels/embedding_pool/gpu_pool_arguments.h"
#include "kernels/embedding_pool/gpu_templates.h"

namespace recmill::kernels {

/// A feature's part of the fused kernels.
struct GpuPooledFeature {
  size_t kernel = 0;     // that its blocks run in
  int64_t schedule = 0;  // place in that kernel
  GpuParts parts;        // of its schedule
  int64_t dim = 0;
  const u8* rows = nullptr;  // of the GPU
};

/// The bags of one batch on their way to a GPU, and there. Keeps its memory from batch to batch;
/// the batch before must have been run to its end when the next is staged.
class GpuBags {
 private:
  friend class GpuFusedPool;
  struct Launch {  // of one kernel
    int64_t first_block = 0, blocks = 0;
  };
  std::vector<Launch> launches_;  // [kernels]
  StagedArrays arrays_;
  StagedArray<gpu::PoolFeature> features_;
  StagedArray<gpu::PoolOutput> outputs_;
  StagedArray<gpu::PoolBlock> blocks_;
  GpuBuffer run_sums_, arrivals_;  // of features with several blocks for a bag
};

class GpuFusedPool {
 public:
  /// The kernels of all features; the GPU outlives this and all GpuBags.
  GpuFusedPool(Gpu& gpu, std::vector<GpuKernel> kernels, std::vector<GpuPooledFeature> features);

  /// Copies bags [features] and the mapping of blocks to pinned memory. Any thread, one at a time
  /// for each GpuBags. Fails where memory is short.
  Status stage(std::span<const JaggedView> bags, GpuBags& batch) const;
  /// Enqueues the copy to the GPU.
  Status send(GpuBags& batch, GpuStream& stream) const;
  /// Enqueues the lookups of what was sent on the same stream, or on one that this stream waits
  /// for: bitwise embedding_pool_reference() where schedules keep the order. `outputs` [features]:
  /// addresses of the GPU; the memory is the caller's until the stream is done.
  Status run(GpuBags& batch, std::span<const gpu::PoolOutput> outputs, GpuStream& stream) const;

 private:
  struct BagArrays {  // of one feature
    StagedArray<int64_t> offsets, lookups;
    StagedArray<float> weights;
  };
  static BagArrays add_bags(const JaggedView& bags, StagedArrays& arrays);
  static gpu::PoolFeature copy_bags(const JaggedView& bags, const BagArrays& to,
                                    const StagedArrays& arrays);
  std::vector<gpu::PoolBlock> map_blocks(std::span<const JaggedView> bags, GpuBags& batch) const;

  Gpu& gpu_;
  const std::vector<GpuKernel> kernels_;
  const std::vector<GpuPooledFeature> features_;
};

}  // namespace recmill::kernels
