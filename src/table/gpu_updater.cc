// SPDX-License-Identifier: Apache-2.0
#include "table/gpu_updater.h"

#include <algorithm>
#include <cstring>

#include "table/gpu_update_source.h"
#include "table/table_update.h"

namespace recmill::table {

namespace gpu = kernels::gpu;

GpuUpdater::GpuUpdater(Gpu& gpu, std::vector<GpuKernel> kernels,
                       std::vector<GpuUpdatedTable> tables)
    : gpu_(gpu), kernels_(std::move(kernels)), tables_(std::move(tables)) {}

// Of all kernels, one after the other.
std::vector<gpu::UpdateBlock> GpuUpdater::map_blocks(std::span<const int64_t> rows,
                                                     GpuUpdates& updates) const {
  std::vector<std::vector<gpu::UpdateBlock>> of_kernel(kernels_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    const EmbeddingTable& table = *tables_[t].table;
    if (table.spec().frozen) continue;
    const int64_t of_block = gpu::rows_of_update_block(static_cast<int>(table.spec().dim));
    for (int64_t part = 0; part * of_block < rows[t]; ++part)
      of_kernel[tables_[t].kernel].push_back({static_cast<i32>(t), static_cast<i32>(part)});
  }
  std::vector<gpu::UpdateBlock> all;
  updates.launches_.clear();
  for (const auto& blocks : of_kernel) {
    updates.launches_.push_back({std::ssize(all), std::ssize(blocks)});
    all.insert(all.end(), blocks.begin(), blocks.end());
  }
  return all;
}

Status GpuUpdater::stage(std::span<const int64_t> rows, std::span<const int64_t> features,
                         int shards, GpuUpdates& updates) const {
  const auto blocks = map_blocks(rows, updates);
  updates.shards_ = shards;
  StagedArrays& arrays = updates.arrays_;
  arrays.clear();
  updates.tables_ = arrays.add<gpu::UpdateTable>(std::ssize(tables_));
  updates.blocks_ = arrays.add<gpu::UpdateBlock>(std::ssize(blocks));
  updates.gradients_.clear();
  for (size_t t = 0; t < tables_.size(); ++t)
    updates.gradients_.push_back(arrays.add<gpu::Gradients>(features[t]));
  RECMILL_RETURN_IF_ERROR(arrays.allocate(gpu_, "rows of an update"));
  std::ranges::copy(blocks, arrays.host(updates.blocks_).begin());
  return {};
}

gpu::UpdateTable GpuUpdater::arguments(size_t table, const gpu::FoundRows& found,
                                       const GpuUpdates& updates, const RowStep& step) const {
  const GpuUpdatedTable& of = tables_[table];
  gpu::UpdateTable to = {};
  to.records = of.records;
  to.row_state = of.row_state;
  to.found = found;
  to.slots = found.rows;
  to.gradients = updates.arrays_.device(updates.gradients_[table]);
  to.shards = static_cast<u64>(updates.shards_);
  to.rounding_key = rounding_of(*of.table, step).key();
  to.schedule = of.schedule;
  const auto bytes = formula_bytes(of.table->spec().optimizer, step);
  std::memcpy(to.formula, bytes.data(), bytes.size());
  return to;
}

Status GpuUpdater::run(GpuUpdates& updates, std::span<const gpu::FoundRows> found,
                       std::span<const std::vector<gpu::Gradients>> gradients, const RowStep& step,
                       GpuStream& stream) const {
  StagedArrays& arrays = updates.arrays_;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].table->spec().frozen) continue;
    arrays.host(updates.tables_)[t] = arguments(t, found[t], updates, step);
    std::ranges::copy(gradients[t], arrays.host(updates.gradients_[t]).begin());
    RECMILL_RETURN_IF_ERROR(arrays.send(updates.gradients_[t], stream));
  }
  RECMILL_RETURN_IF_ERROR(arrays.send(updates.tables_, stream));
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const auto [first, blocks] = updates.launches_[k];
    if (blocks == 0) continue;
    const gpu::UpdateArguments of{arrays.device(updates.tables_),
                                  arrays.device(updates.blocks_) + first};
    const Grid grid{{static_cast<unsigned>(blocks)}, {gpu::kUpdateThreads}};
    RECMILL_RETURN_IF_ERROR(gpu_.launch(kernels_[k], grid, of, stream));
  }
  return {};
}

}  // namespace recmill::table
