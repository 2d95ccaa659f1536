// SPDX-License-Identifier: Apache-2.0
// embedding_pool on a GPU: all features of a batch by the fused kernels that were compiled for
// their schedules, each block of the grid mapped from the actual bags (RecFlex, section IV-B).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "batch/gpu_sparse_batch.h"
#include "batch/sparse_batch.h"
#include "device/gpu/gpu.h"
#include "device/gpu/staged_arrays.h"
#include "device/thread_pool.h"
#include "kernels/embedding_pool/gpu_pool_arguments.h"
#include "kernels/embedding_pool/gpu_templates.h"
#include "kernels/near_rows/near_rows.h"

namespace recmill::kernels {

/// One schedule's place in the fused kernels.
struct GpuPoolPlace {
  size_t kernel = 0;     // that its blocks run in
  int64_t schedule = 0;  // place in that kernel
  GpuParts parts = {};
  bool (*admits)(const JaggedView& bags) = nullptr;  // GpuPoolTemplate
};

/// A feature's part of the fused kernels.
struct GpuPooledFeature {
  size_t bags = 0;  // which of a batch's: several may pool the same
  int64_t dim = 0;
  bool weighted = false;     // whether its kernel reads weights of lookups
  const u8* rows = nullptr;  // of the GPU
  std::string name = {};     // that errors say; empty: its number
  GpuPoolPlace chosen = {};
  GpuPoolPlace otherwise = {};  // where `chosen` does not admit the bags
  // Of a table of which some rows are near: where the others are, of the GPU, and the slots, which
  // bags of the host are given on their way, and those of the GPU have.
  const u8* far = nullptr;
  const NearRows* near = nullptr;
};

/// A fused kernel, and how it is launched.
struct GpuPoolLaunched {
  GpuKernel kernel;
  int64_t dynamic_shared = 0;  // bytes of a block that it does not use: fewer fit an SM
};

/// Changes the order of a kernel's blocks, which are there by feature, or runs some of them more
/// than once; without it they run heaviest first. For kernels that are listed
/// (codegen::GpuPoolSourceOptions) it gives where each block of the grid begins among them, and
/// their end; for others nothing.
using ArrangeGpuBlocks = std::function<std::vector<int64_t>(std::vector<gpu::PoolBlock>& blocks)>;

/// How large a feature's part of a batch is.
struct GpuBagsSize {
  int64_t lookups = 0;
  int64_t dim = 0;
  bool weighted = false;
  GpuParts parts = {};      // of its schedule
  bool one_each = false;    // exactly one lookup in each bag: offsets are there once for all such
  bool made_there = false;  // on the GPU, with their offsets unless they are one_each
};

/// The bags of one batch on their way to a GPU, and there. Keeps its memory from batch to batch;
/// the batch before must have been run to its end when the next is staged.
class GpuBags {
 public:
  /// What they take of a batch of `samples`, at most, in kernels that are not listed.
  static GpuBytes need(std::span<const GpuBagsSize> features, int64_t samples);

  /// [features] Where the bags are on the GPU, once sent.
  std::span<const gpu::PoolFeature> features() const { return arrays_.host(features_); }
  /// Of bags of the host whose tables have near rows: lookups of others.
  int64_t far_lookups() const { return far_lookups_; }

 private:
  friend class GpuFusedPool;
  struct Launch {                         // of one kernel
    int64_t first_block = 0, blocks = 0;  // among all; of the grid
    int64_t first_begin = 0;              // among all begins
  };
  struct BagArrays {
    StagedArray<int64_t> offsets, lookups;
    StagedArray<float> weights;
  };
  std::vector<Launch> launches_;  // [kernels]
  std::vector<size_t> kernels_;   // [features]: that each runs in
  std::vector<int64_t> rows_;     // [features]: that come out
  StagedArrays arrays_;
  StagedArray<int64_t> one_each_;  // offsets of all bags of exactly one lookup
  std::vector<BagArrays> bags_;    // as they are staged
  StagedArray<gpu::PoolFeature> features_;
  StagedArray<gpu::PoolBlock> blocks_;
  StagedArray<int64_t> begins_;
  StagedArrays run_arrays_;  // known when lookups are enqueued
  StagedArray<gpu::PoolOutput> outputs_;
  GpuBuffer run_sums_, arrivals_;  // of features with several blocks for a bag
  int64_t far_lookups_ = 0;
};

class GpuFusedPool {
 public:
  /// The kernels of all features; the GPU outlives this and all GpuBags.
  GpuFusedPool(Gpu& gpu, std::vector<GpuPoolLaunched> kernels,
               std::vector<GpuPooledFeature> features);

  /// Copies the batch's bags and the mapping of blocks to pinned memory, bags by the pool. Any
  /// thread, one at a time for each GpuBags. Fails where memory is short, and where bags have
  /// weights for which their kernel was not made, or none. `on_gpu` [bags] or empty: bags that are
  /// there are not copied, and have to be there when run() comes to them.
  Status stage(std::span<const JaggedView> bags, ThreadPool& pool, GpuBags& batch,
               const ArrangeGpuBlocks& arrange = nullptr,
               std::span<const BagsOnGpu> on_gpu = {}) const;
  /// Enqueues the copy to the GPU, as much as is known by then.
  Status send(GpuBags& batch, GpuStream& stream) const;
  /// Enqueues the lookups of what was sent on the same stream, or on one that this stream waits
  /// for: bitwise embedding_pool_reference() where schedules keep the order. `outputs` [features]:
  /// addresses of the GPU; the memory is the caller's until the stream is done. `clocks`
  /// [blocks()]: of the GPU, for kernels that are timed.
  Status run(GpuBags& batch, std::span<const gpu::PoolOutput> outputs, GpuStream& stream,
             int64_t* clocks = nullptr) const;

  int64_t features() const { return std::ssize(features_); }
  /// The blocks of a batch that is staged, of all kernels one after the other.
  static std::span<const gpu::PoolBlock> blocks(const GpuBags& batch);

 private:
  std::string name_of(size_t feature) const;
  Status check_weights(std::span<const JaggedView> bags, std::span<const BagsOnGpu> on_gpu) const;
  static void add_bags(std::span<const JaggedView> bags, std::span<const BagsOnGpu> on_gpu,
                       GpuBags& batch);
  std::vector<const NearRows*> near_rows(size_t bags) const;
  void copy_bags(std::span<const JaggedView> bags, std::span<const BagsOnGpu> on_gpu,
                 ThreadPool& pool, GpuBags& batch) const;
  struct Mapped {
    std::vector<gpu::PoolBlock> blocks;
    std::vector<int64_t> begins;
  };
  Mapped map_blocks(std::span<const JaggedView> bags, std::span<const GpuPoolPlace* const> places,
                    const ArrangeGpuBlocks& arrange, GpuBags& batch) const;
  gpu::PoolFeature arguments(size_t feature, const JaggedView& bags,
                             std::span<const BagsOnGpu> on_gpu, const GpuBags& batch) const;

  Gpu& gpu_;
  const std::vector<GpuPoolLaunched> kernels_;
  const std::vector<GpuPooledFeature> features_;
};

}  // namespace recmill::kernels
