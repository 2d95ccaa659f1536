// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/far_rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace recmill::store {
namespace {

constexpr const char* kCounts = "numbers of far rows";
constexpr int64_t kBatchesOfAnUpdate = 4;  // without more memory

}  // namespace

int64_t FarRows::need_of_batch(int64_t lookups) {
  return reserved_bytes(lookups * int64_t{sizeof(i64)}) + reserved_bytes(int64_t{sizeof(u64)});
}

GpuBytes FarRows::need(int64_t tables) {
  if (tables == 0) return {};
  const int64_t of_tables = tables * int64_t{sizeof(i64)};
  return {of_tables, of_tables + kBatchesOfAnUpdate * int64_t{sizeof(i64)}};
}

FarRows::FarRows(const ModelSpec& model, std::span<const RowsAt> rows, Gpu& gpu)
    : model_(model), rows_(rows.begin(), rows.end()), gpu_(gpu), lines_(rows.size()) {
  for (size_t t = 0; t < rows_.size(); ++t)
    if (rows_[t].near != nullptr) split_.push_back(t);
}

Result<std::unique_ptr<FarRows>> FarRows::make(const ModelSpec& model, std::span<const RowsAt> rows,
                                               Gpu& gpu,
                                               const kernels::codegen::CompileForGpu& compile) {
  std::unique_ptr<FarRows> made(new FarRows(model, rows, gpu));
  if (made->split_.empty()) return made;
  RECMILL_ASSIGN_OR_RETURN(made->kernels_, kernels::GpuNearRows::make(gpu, compile));
  const GpuBytes bytes = need(std::ssize(made->split_));
  RECMILL_ASSIGN_OR_RETURN(made->counted_,
                           gpu.allocate(static_cast<size_t>(bytes.device), kCounts));
  RECMILL_ASSIGN_OR_RETURN(made->counted_of_host_,
                           gpu.allocate_pinned(static_cast<size_t>(bytes.pinned), kCounts));
  return made;
}

// ---- ahead of training

// Which rows of a table are near, to the GPU, once.
Status FarRows::send_lines(size_t table, GpuStream& stream) {
  if (lines_[table].size() > 0) return {};
  const auto bytes = std::as_bytes(rows_[table].near->lines());
  const std::string what = "near rows of table " + model_.tables[table].name;
  RECMILL_ASSIGN_OR_RETURN(auto staging, gpu_.allocate_pinned(bytes.size(), what));
  RECMILL_ASSIGN_OR_RETURN(lines_[table], gpu_.allocate(bytes.size(), what));
  std::memcpy(staging.as<std::byte>().data(), bytes.data(), bytes.size());
  RECMILL_RETURN_IF_ERROR(stream.to_device(lines_[table], staging, bytes.size()));
  return stream.synchronize();
}

Result<std::vector<BagsOnGpu>> FarRows::map(const SparseBatch& batch, OfBatch& of,
                                            GpuStream& stream) {
  of.is_counted_there = false;
  std::vector<BagsOnGpu> bags = batch.on_gpu->features;
  std::vector<kernels::gpu::MappedFeature> mapped;
  std::vector<size_t> features;
  int64_t lookups = 0;
  for (size_t f = 0; f < bags.size(); ++f) {
    if (!bags[f].are_there || !is_split(f)) continue;
    const auto table = static_cast<size_t>(model_.features[f].table);
    RECMILL_RETURN_IF_ERROR(send_lines(table, stream));
    const int64_t of_feature = batch.features[f].view(batch.samples).lookups();
    mapped.push_back({bags[f].rows, nullptr, of_feature,
                      lines_[table].address<kernels::gpu::NearLine>(), rows_[table].near->near()});
    features.push_back(f);
    lookups += of_feature;
  }
  if (lookups == 0) return bags;
  RECMILL_RETURN_IF_ERROR(
      reserve(of.slots, static_cast<size_t>(lookups) * sizeof(i64), gpu_, "slots of a batch"));
  RECMILL_RETURN_IF_ERROR(reserve(of.counted, sizeof(u64), gpu_, "slots of a batch"));
  i64* slots = of.slots.address<i64>();
  for (size_t i = 0; i < mapped.size(); ++i) {
    mapped[i].slots = slots;
    bags[features[i]].rows = slots;
    slots += mapped[i].lookups;
  }
  RECMILL_RETURN_IF_ERROR(stream.zero(of.counted));
  RECMILL_RETURN_IF_ERROR(kernels_->map(mapped, of.counted.address<u64>(), stream));
  RECMILL_RETURN_IF_ERROR(batch.on_gpu->read_by(stream));
  of.is_counted_there = true;
  return bags;
}

int64_t FarRows::lookups_of_far_tables(const SparseBatch& batch) const {
  int64_t lookups = 0;
  for (size_t f = 0; f < batch.features.size(); ++f) {
    const RowsAt& rows = rows_[model_.features[f].table];
    if (rows.memory == GpuMemory::host && rows.near == nullptr)
      lookups += batch.features[f].view(batch.samples).lookups();
  }
  return lookups;
}

// ---- counts

Status FarRows::count(std::span<const kernels::gpu::FoundRows> found,
                      std::span<const OfBatch* const> batches, GpuStream& stream) {
  for (const OfBatch* of : batches) taken_.lookups += of->on_host;
  counted_batches_ = 0;
  if (split_.empty()) return {};
  const size_t of_tables = split_.size() * sizeof(i64);
  RECMILL_RETURN_IF_ERROR(
      reserve(counted_of_host_, of_tables + batches.size() * sizeof(i64), gpu_, kCounts));
  std::vector<kernels::gpu::CountedTable> tables;
  for (size_t i = 0; i < split_.size(); ++i) {
    const size_t t = split_[i];
    if (!model_.tables[t].frozen)
      tables.push_back(
          {found[t].rows, found[t].count, rows_[t].near->near(), counted_.address<i64>() + i});
  }
  RECMILL_RETURN_IF_ERROR(stream.zero(counted_));
  RECMILL_RETURN_IF_ERROR(kernels_->count_far(tables, stream));
  RECMILL_RETURN_IF_ERROR(stream.to_host(counted_of_host_, counted_, of_tables));
  for (const OfBatch* of : batches) {
    if (!of->is_counted_there) continue;
    const size_t at = of_tables + counted_batches_++ * sizeof(i64);
    RECMILL_RETURN_IF_ERROR(stream.to_host(counted_of_host_, of->counted, sizeof(u64), at));
  }
  return {};
}

FarCounts FarRows::take(std::span<const int64_t> distinct) {
  FarCounts taken = std::exchange(taken_, {});
  for (size_t t = 0; t < distinct.size(); ++t)
    if (rows_[t].memory == GpuMemory::host && rows_[t].near == nullptr) taken.rows += distinct[t];
  if (split_.empty()) return taken;
  const auto counted = counted_of_host_.as<int64_t>();
  for (size_t i = 0; i < split_.size(); ++i) taken.rows += counted[i];
  for (size_t i = 0; i < counted_batches_; ++i) taken.lookups += counted[split_.size() + i];
  return taken;
}

}  // namespace recmill::store
