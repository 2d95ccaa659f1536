// SPDX-License-Identifier: Apache-2.0
// Row updates on a GPU: the distinct rows of all tables in one launch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/gpu/gpu.h"
#include "device/gpu/staged_arrays.h"
#include "kernels/near_rows/near_rows.h"
#include "kernels/row_update/gpu_update_arguments.h"
#include "table/embedding_table.h"
#include "table/optimizers/row_step.h"
#include "table/slot_names.h"

namespace recmill::table {

/// A table's part of the fused kernels.
struct GpuUpdatedTable {
  const EmbeddingTable* table = nullptr;  // of the host: what the rows are, not what is in them
  u8* records = nullptr;                  // of the GPU
  float* row_state = nullptr;
  size_t kernel = 0;     // that its blocks run in
  int64_t schedule = 0;  // place in that kernel
  // Where rows are slots, which row each has: of the GPU, for 16-bit rows, and of the host.
  const i64* row_of_slot = nullptr;
  const SlotNames* names = nullptr;
  // Of GpuUpdateFunction::two_memories: where far slots begin, of the GPU, and what slots are. Then
  // row_of_slot has the near ones.
  u8* far_records = nullptr;
  float* far_row_state = nullptr;
  const kernels::NearRows* near = nullptr;
};

/// The mapping of blocks of one iteration's update, on its way to a GPU, and there. Keeps its
/// memory; the iteration before must have been run to its end when the next is staged.
class GpuUpdates {
 private:
  friend class GpuUpdater;
  struct Launch {  // of one kernel
    int64_t first_block = 0, blocks = 0;
    int64_t first_row = 0, rows = 0;  // in the list of rows, at most
  };
  std::vector<Launch> launches_;  // [kernels]
  int slices_ = 1;
  StagedArrays arrays_;
  StagedArray<kernels::gpu::UpdateBlock> blocks_;
  StagedArrays run_arrays_;                                      // known when updates are enqueued
  std::vector<StagedArray<kernels::gpu::Gradients>> gradients_;  // [tables]
  StagedArray<kernels::gpu::UpdateTable> tables_;
  GpuBuffer listed_;    // kernels::gpu::ListedRow, by kernel
  GpuBuffer progress_;  // kernels::gpu::UpdateProgress [kernels]
};

class GpuUpdater {
 public:
  /// What a GpuUpdates takes of an iteration with so many distinct rows of each table at most, and
  /// gradients of so many features.
  static GpuBytes need(std::span<const int64_t> rows, std::span<const int64_t> features);

  /// Frozen tables have no part. The GPU outlives this and all GpuUpdates.
  GpuUpdater(Gpu& gpu, std::vector<GpuKernel> kernels, std::vector<GpuUpdatedTable> tables);

  /// Maps blocks to rows in pinned memory, for at most `rows` [tables] distinct rows: how many
  /// there are only the GPU will know, and the host does not wait for it. Blocks beyond are
  /// not taken. `features` [tables]: whose gradients there will be.
  Status stage(std::span<const int64_t> rows, std::span<const int64_t> features, int slices,
               GpuUpdates& updates) const;
  /// Enqueues the copy to the GPU, as much as is known by then.
  Status send(GpuUpdates& updates, GpuStream& stream) const { return updates.arrays_.send(stream); }
  /// And the rest, which is where `found` [tables] and `gradients` [tables][features] will be:
  /// of the GPU.
  Status send_arguments(GpuUpdates& updates, std::span<const kernels::gpu::FoundRows> found,
                        std::span<const std::vector<kernels::gpu::Gradients>> gradients,
                        const RowStep& step, GpuStream& stream) const;
  /// Enqueues the updates of what was sent: bitwise update_tables_reference(). What was found and
  /// the gradients are there when the stream comes to them. Where NaNs are looked for, fails when
  /// an updated row has one, naming the kernel, the table and the row.
  Status run(const GpuUpdates& updates, GpuStream& stream) const;

 private:
  std::vector<kernels::gpu::UpdateBlock> map_blocks(std::span<const int64_t> rows,
                                                    GpuUpdates& updates) const;
  Status launch(const GpuUpdates& updates, size_t kernel, GpuStream& stream) const;
  Result<PinnedBuffer> read_back(const void* from, int64_t bytes, GpuStream& stream) const;
  Status check_nan(size_t table, const kernels::gpu::FoundRows& found, GpuStream& stream) const;
  kernels::gpu::UpdateTable arguments(size_t table, const kernels::gpu::FoundRows& found,
                                      const GpuUpdates& updates, const RowStep& step) const;

  Gpu& gpu_;
  const std::vector<GpuKernel> kernels_;
  const std::vector<GpuUpdatedTable> tables_;
};

}  // namespace recmill::table
