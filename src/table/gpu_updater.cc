// SPDX-License-Identifier: Apache-2.0
#include "table/gpu_updater.h"

#include <algorithm>
#include <cstring>

#include "table/gpu_update_source.h"
#include "table/table_update.h"

namespace recmill::table {

namespace gpu = kernels::gpu;

static_assert(sizeof(gpu::Source) == sizeof(LookupSource) &&
              offsetof(gpu::Source, feature) == offsetof(LookupSource, feature) &&
              offsetof(gpu::Source, shard) == offsetof(LookupSource, shard));

GpuUpdater::GpuUpdater(Gpu& gpu, std::vector<GpuKernel> kernels,
                       std::vector<GpuUpdatedTable> tables)
    : gpu_(gpu), kernels_(std::move(kernels)), tables_(std::move(tables)) {}

// Of all kernels, one after the other.
std::vector<gpu::UpdateBlock> GpuUpdater::map_blocks(std::span<const DistinctRows* const> distinct,
                                                     GpuUpdates& updates) const {
  std::vector<std::vector<gpu::UpdateBlock>> of_kernel(kernels_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    const EmbeddingTable& table = *tables_[t].table;
    if (table.spec().frozen) continue;
    const int64_t rows = gpu::rows_of_update_block(static_cast<int>(table.spec().dim));
    for (int64_t part = 0; part * rows < distinct[t]->count(); ++part)
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

Status GpuUpdater::stage(std::span<const DistinctRows* const> distinct,
                         std::span<const int64_t> features, int shards, GpuUpdates& updates) const {
  const auto blocks = map_blocks(distinct, updates);
  updates.shards_ = shards;
  StagedArrays& arrays = updates.arrays_;
  arrays.clear();
  updates.tables_ = arrays.add<gpu::UpdateTable>(std::ssize(tables_));
  updates.blocks_ = arrays.add<gpu::UpdateBlock>(std::ssize(blocks));
  updates.rows_.assign(tables_.size(), {});
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].table->spec().frozen) continue;
    const DistinctRows& of = *distinct[t];
    updates.rows_[t] = {
        arrays.add<int64_t>(of.count()),          arrays.add<int64_t>(std::ssize(of.begins)),
        arrays.add<LookupSource>(of.lookups()),   arrays.add<float>(std::ssize(of.weights)),
        arrays.add<float>(std::ssize(of.counts)), arrays.add<gpu::Gradients>(features[t])};
  }
  RECMILL_RETURN_IF_ERROR(arrays.allocate(gpu_, "rows of an update"));
  std::ranges::copy(blocks, arrays.host(updates.blocks_).begin());
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].table->spec().frozen) continue;
    const GpuUpdates::Rows& to = updates.rows_[t];
    std::ranges::copy(distinct[t]->rows, arrays.host(to.rows).begin());
    std::ranges::copy(distinct[t]->begins, arrays.host(to.begins).begin());
    std::ranges::copy(distinct[t]->sources, arrays.host(to.sources).begin());
    std::ranges::copy(distinct[t]->weights, arrays.host(to.weights).begin());
    std::ranges::copy(distinct[t]->counts, arrays.host(to.counts).begin());
  }
  return {};
}

gpu::UpdateTable GpuUpdater::arguments(size_t table, const GpuUpdates& updates,
                                       const RowStep& step) const {
  const GpuUpdatedTable& of = tables_[table];
  const GpuUpdates::Rows& rows = updates.rows_[table];
  const StagedArrays& arrays = updates.arrays_;
  gpu::UpdateTable to = {};
  to.records = of.records;
  to.row_state = of.row_state;
  to.slots = to.keys = arrays.device(rows.rows);
  to.begins = arrays.device(rows.begins);
  to.sources = reinterpret_cast<const gpu::Source*>(arrays.device(rows.sources));
  to.weights = rows.weights.count == 0 ? nullptr : arrays.device(rows.weights);
  to.counts = rows.counts.count == 0 ? nullptr : arrays.device(rows.counts);
  to.gradients = arrays.device(rows.gradients);
  to.rows = rows.rows.count;
  to.shards = static_cast<u64>(updates.shards_);
  to.rounding_key = rounding_of(*of.table, step).key();
  to.schedule = of.schedule;
  const auto bytes = formula_bytes(of.table->spec().optimizer, step);
  std::memcpy(to.formula, bytes.data(), bytes.size());
  return to;
}

Status GpuUpdater::run(GpuUpdates& updates, std::span<const std::vector<gpu::Gradients>> gradients,
                       const RowStep& step, GpuStream& stream) const {
  StagedArrays& arrays = updates.arrays_;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].table->spec().frozen) continue;
    arrays.host(updates.tables_)[t] = arguments(t, updates, step);
    std::ranges::copy(gradients[t], arrays.host(updates.rows_[t].gradients).begin());
    RECMILL_RETURN_IF_ERROR(arrays.send(updates.rows_[t].gradients, stream));
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
