// SPDX-License-Identifier: Apache-2.0
#include "table/gpu/gpu_updater.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>

#include "kernels/row_values.h"
#include "table/gpu/gpu_update_source.h"
#include "table/optimizers/row_formulas.h"
#include "table/table_update.h"

namespace recmill::table {

namespace gpu = kernels::gpu;

namespace {

constexpr int64_t kBlocksPerSm = 2;  // at most, that are on it at a time

constexpr const char* kChecked = "updated rows that are looked at";
constexpr int64_t kCheckedBytes = 16 << 20;  // of them at a time

/// Which row of its table a slot has.
int64_t row_of(const GpuUpdatedTable& table, int64_t slot) {
  if (table.near != nullptr) return table.near->row(slot);
  return table.names == nullptr ? slot : table.names->row(slot);
}

const u8* record_of(const GpuUpdatedTable& table, int64_t slot) {
  const int64_t stride = table.table->rows().stride;
  if (table.near != nullptr && slot >= table.near->near())
    return table.far_records + (slot - table.near->near()) * stride;
  return table.records + slot * stride;
}

/// Fails where a record has one, `slots` saying which they are of the table's.
Status find_nan(const kernels::RowStorage& records, std::span<const i64> slots,
                const GpuUpdatedTable& table) {
  for (size_t i = 0; i < slots.size(); ++i) {
    for (int64_t element = 0; element < records.dim; ++element)
      if (std::isnan(kernels::weight_value(records, static_cast<int64_t>(i), element)))
        return Status::Failed("wrote a NaN as element " + std::to_string(element) + " of row " +
                              std::to_string(row_of(table, slots[i])) + " of table '" +
                              table.table->spec().name + "'");
  }
  return {};
}

/// Lookups, beyond which a row is better a block's than a warp's: a block looks for those of each
/// slice, whether there are any or not.
int64_t long_row(const EmbeddingTable& table, int slices) {
  bool has_row_state = false;
  with_formula(table.spec().optimizer, {}, [&](const auto& formula) {
    has_row_state = std::remove_cvref_t<decltype(formula)>::kRowState;
  });
  if (gpu::too_wide_for_warps(has_row_state, table.spec().dim)) return 0;
  return std::max<int64_t>(512, int64_t{8} * slices);
}

/// Whether a kernel may read them as it does.
bool is_aligned(const gpu::Gradients& of, const kernels::RowStorage& rows) {
  return reinterpret_cast<uintptr_t>(of.data) % 16 == 0 &&
         of.stride % gpu::lanes_of_update(rows.dim, rows.stride, rows.element_state,
                                          kernels::bytes_of(rows.precision)) ==
             0;
}

}  // namespace

GpuUpdater::GpuUpdater(Gpu& gpu, std::vector<GpuKernel> kernels,
                       std::vector<GpuUpdatedTable> tables)
    : gpu_(gpu), kernels_(std::move(kernels)), tables_(std::move(tables)) {}

// Of all kernels, one after the other.
std::vector<gpu::UpdateBlock> GpuUpdater::map_blocks(std::span<const int64_t> rows,
                                                     GpuUpdates& updates) const {
  std::vector<std::vector<gpu::UpdateBlock>> of_kernel(kernels_.size());
  std::vector<int64_t> rows_of_kernel(kernels_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    const EmbeddingTable& table = *tables_[t].table;
    if (table.spec().frozen) continue;
    for (int64_t part = 0; part * gpu::kUpdateThreads < rows[t]; ++part)
      of_kernel[tables_[t].kernel].push_back({static_cast<i32>(t), static_cast<i32>(part)});
    rows_of_kernel[tables_[t].kernel] += rows[t];
  }
  std::vector<gpu::UpdateBlock> all;
  updates.launches_.clear();
  int64_t first_row = 0;
  for (size_t k = 0; k < of_kernel.size(); ++k) {
    updates.launches_.push_back(
        {std::ssize(all), std::ssize(of_kernel[k]), first_row, rows_of_kernel[k]});
    all.insert(all.end(), of_kernel[k].begin(), of_kernel[k].end());
    first_row += rows_of_kernel[k];
  }
  return all;
}

GpuBytes GpuUpdater::need(std::span<const int64_t> rows, std::span<const int64_t> features) {
  StagedArrays arrays, run_arrays;
  int64_t blocks = 0, all_rows = 0;
  for (const int64_t of_table : rows) {
    blocks += (of_table + gpu::kUpdateThreads - 1) / gpu::kUpdateThreads;
    all_rows += of_table;
  }
  arrays.add<gpu::UpdateBlock>(blocks);
  run_arrays.add<gpu::UpdateTable>(std::ssize(rows));
  for (const int64_t of_table : features) run_arrays.add<gpu::Gradients>(of_table);
  GpuBytes all = arrays.need();
  all += run_arrays.need();
  const int64_t most_kernels = std::ssize(rows);
  all.device += reserved_bytes((all_rows + blocks) * int64_t{sizeof(gpu::ListedRow)}) +
                reserved_bytes(most_kernels * int64_t{sizeof(gpu::UpdateProgress)});
  return all;
}

Status GpuUpdater::stage(std::span<const int64_t> rows, std::span<const int64_t> features,
                         int slices, GpuUpdates& updates) const {
  const auto blocks = map_blocks(rows, updates);
  updates.slices_ = slices;
  StagedArrays& arrays = updates.arrays_;
  arrays.clear();
  updates.blocks_ = arrays.add<gpu::UpdateBlock>(std::ssize(blocks));
  RECMILL_RETURN_IF_ERROR(arrays.allocate(gpu_, "rows of an update"));
  StagedArrays& run_arrays = updates.run_arrays_;
  run_arrays.clear();
  updates.tables_ = run_arrays.add<gpu::UpdateTable>(std::ssize(tables_));
  updates.gradients_.clear();
  for (size_t t = 0; t < tables_.size(); ++t)
    updates.gradients_.push_back(run_arrays.add<gpu::Gradients>(features[t]));
  RECMILL_RETURN_IF_ERROR(run_arrays.allocate(gpu_, "rows of an update"));
  const int64_t listed = std::accumulate(rows.begin(), rows.end(), int64_t{0}) + std::ssize(blocks);
  RECMILL_RETURN_IF_ERROR(reserve(updates.listed_,
                                  static_cast<size_t>(listed) * sizeof(gpu::ListedRow), gpu_,
                                  "rows of an update"));
  RECMILL_RETURN_IF_ERROR(reserve(updates.progress_, kernels_.size() * sizeof(gpu::UpdateProgress),
                                  gpu_, "rows of an update"));
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
  to.row_of_slot = of.row_of_slot;
  to.gradients = updates.run_arrays_.device(updates.gradients_[table]);
  to.slices = static_cast<u64>(updates.slices_);
  to.rounding_key = rounding_of(*of.table, step).key();
  to.long_row = long_row(*of.table, updates.slices_);
  to.schedule = of.schedule;
  to.l2 = l2_of_gradients(of.table->spec().optimizer);
  const auto bytes = formula_bytes(of.table->spec().optimizer, step);
  std::memcpy(to.formula, bytes.data(), bytes.size());
  to.far_records = of.far_records;
  to.far_row_state = of.far_row_state;
  to.near = of.near == nullptr ? 0 : of.near->near();
  return to;
}

Status GpuUpdater::send_arguments(GpuUpdates& updates, std::span<const gpu::FoundRows> found,
                                  std::span<const std::vector<gpu::Gradients>> gradients,
                                  const RowStep& step, GpuStream& stream) const {
  StagedArrays& arrays = updates.run_arrays_;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].table->spec().frozen) continue;
    arrays.host(updates.tables_)[t] = arguments(t, found[t], updates, step);
    RECMILL_CHECK(std::ranges::all_of(gradients[t], [&](const gpu::Gradients& of) {
      return is_aligned(of, tables_[t].table->rows());
    }));
    std::ranges::copy(gradients[t], arrays.host(updates.gradients_[t]).begin());
  }
  RECMILL_RETURN_IF_ERROR(arrays.send(stream));
  return stream.zero(updates.progress_);
}

Status GpuUpdater::run(const GpuUpdates& updates, GpuStream& stream) const {
  for (size_t k = 0; k < kernels_.size(); ++k)
    if (updates.launches_[k].blocks > 0) RECMILL_RETURN_IF_ERROR(launch(updates, k, stream));
  if (!gpu_.options().check_nan) return {};
  const auto arguments = updates.run_arrays_.host(updates.tables_);
  for (size_t t = 0; t < tables_.size(); ++t)
    if (!tables_[t].table->spec().frozen)
      RECMILL_RETURN_IF_ERROR(check_nan(t, arguments[t].found, stream));
  return {};
}

Result<PinnedBuffer> GpuUpdater::read_back(const void* from, int64_t bytes,
                                           GpuStream& stream) const {
  RECMILL_ASSIGN_OR_RETURN(auto to, gpu_.allocate_pinned(static_cast<size_t>(bytes), kChecked));
  RECMILL_RETURN_IF_ERROR(
      gpu_.driver().copy(to.as<std::byte>().data(), from, to.size(), stream.handle()));
  RECMILL_RETURN_IF_ERROR(stream.synchronize());
  return to;
}

// Of the rows that were found, as many read back at a time as there is room for.
Status GpuUpdater::check_nan(size_t table, const gpu::FoundRows& found, GpuStream& stream) const {
  const GpuUpdatedTable& of = tables_[table];
  RECMILL_ASSIGN_OR_RETURN(const auto count, read_back(found.count, sizeof(i64), stream));
  const i64 rows = count.as<i64>()[0];
  if (rows == 0) return {};
  RECMILL_ASSIGN_OR_RETURN(const auto numbers,
                           read_back(found.rows, rows * int64_t{sizeof(i64)}, stream));
  kernels::RowStorage records = of.table->rows();
  const int64_t most = std::min(rows, std::max<int64_t>(1, kCheckedBytes / records.stride));
  RECMILL_ASSIGN_OR_RETURN(
      const auto room, gpu_.allocate_pinned(static_cast<size_t>(most * records.stride), kChecked));
  records.data = room.as<std::byte>().data();
  for (int64_t first = 0; first < rows; first += most) {
    const auto part = numbers.as<i64>().subspan(first, std::min(most, rows - first));
    for (size_t i = 0; i < part.size(); ++i)
      RECMILL_RETURN_IF_ERROR(
          gpu_.driver().copy(records.record(static_cast<int64_t>(i)), record_of(of, part[i]),
                             static_cast<size_t>(records.stride), stream.handle()));
    RECMILL_RETURN_IF_ERROR(stream.synchronize());
    RECMILL_RETURN_IF_ERROR(find_nan(records, part, of).at("kernel " + kernels_[of.kernel].name));
  }
  return {};
}

Status GpuUpdater::launch(const GpuUpdates& updates, size_t kernel, GpuStream& stream) const {
  const auto [first_block, blocks, first_row, rows] = updates.launches_[kernel];
  gpu::UpdateArguments of = {};
  of.tables = updates.run_arrays_.device(updates.tables_);
  of.blocks = updates.arrays_.device(updates.blocks_) + first_block;
  of.block_count = blocks;
  of.listed = {updates.listed_.address<gpu::ListedRow>() + first_row + first_block, rows};
  of.progress = updates.progress_.address<gpu::UpdateProgress>() + kernel;
  const int64_t most = gpu_.properties().sms * kBlocksPerSm;
  for (of.is_listing = 1; of.is_listing >= 0; --of.is_listing) {
    const int64_t grid_blocks = std::min(of.is_listing == 1 ? blocks : rows, most);
    const Grid grid{{static_cast<unsigned>(grid_blocks)}, {gpu::kUpdateThreads}};
    RECMILL_RETURN_IF_ERROR(gpu_.launch(kernels_[kernel], grid, of, stream));
  }
  return {};
}

}  // namespace recmill::table
