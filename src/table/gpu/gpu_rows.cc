// SPDX-License-Identifier: Apache-2.0
#include "table/gpu/gpu_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace recmill::table {
namespace {

struct Bytes {
  std::byte* data = nullptr;
  size_t size = 0;
};

Bytes records_of(const EmbeddingTable& table) {
  const kernels::RowStorage& rows = table.rows();
  return {rows.data, static_cast<size_t>(rows.count * rows.stride)};
}
Bytes row_state_of(const EmbeddingTable& table) {
  const kernels::RowStorage& rows = table.rows();
  if (rows.row_state == nullptr) return {};
  return {reinterpret_cast<std::byte*>(rows.row_state),
          static_cast<size_t>(rows.count) * sizeof(float)};
}

/// Calls copy(offset, size) for pieces that fit the staging memory.
template <class Copy>
Status in_pieces(size_t size, size_t piece, const Copy& copy) {
  for (size_t at = 0; at < size; at += piece)
    RECMILL_RETURN_IF_ERROR(copy(at, std::min(piece, size - at)));
  return {};
}

Status to_gpu(const Bytes& from, GpuBuffer& to, PinnedBuffer& staging, GpuStream& stream) {
  return in_pieces(from.size, staging.size(), [&](size_t at, size_t size) {
    std::memcpy(staging.as<std::byte>().data(), from.data + at, size);
    RECMILL_RETURN_IF_ERROR(stream.to_device(to, staging, size, at));
    return stream.synchronize();
  });
}
Status to_host(const GpuBuffer& from, const Bytes& to, PinnedBuffer& staging, GpuStream& stream) {
  return in_pieces(to.size, staging.size(), [&](size_t at, size_t size) -> Status {
    RECMILL_RETURN_IF_ERROR(stream.to_host(staging, from, size, 0, at));
    RECMILL_RETURN_IF_ERROR(stream.synchronize());
    std::memcpy(to.data + at, staging.as<std::byte>().data(), size);
    return {};
  });
}

}  // namespace

Result<GpuRows> GpuRows::allocate(const EmbeddingTable& table, Gpu& gpu, GpuMemory where) {
  const std::string what = "table " + table.spec().name;
  const auto records = records_of(table).size;
  const auto all = EmbeddingTable::bytes(table.spec(), {table.share(), table.column_split()});
  GpuBuffer of_records, of_state;
  RECMILL_ASSIGN_OR_RETURN(of_records, gpu.allocate(records, what, where));
  if (const size_t state = static_cast<size_t>(all) - records; state > 0) {
    RECMILL_ASSIGN_OR_RETURN(of_state, gpu.allocate(state, what, where));
  }
  GpuRows rows;
  rows.records_ = std::make_shared<GpuBuffer>(std::move(of_records));
  rows.row_state_ = std::make_shared<GpuBuffer>(std::move(of_state));
  return rows;
}

TableRoom GpuRows::room_of_zeros() {
  std::memset(records(), 0, records_->size());
  if (row_state() != nullptr) std::memset(row_state(), 0, row_state_->size());
  return {reinterpret_cast<std::byte*>(records()), row_state()};
}

Status GpuRows::upload(const EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream) {
  RECMILL_RETURN_IF_ERROR(to_gpu(records_of(table), *records_, staging, stream));
  return to_gpu(row_state_of(table), *row_state_, staging, stream);
}

Status GpuRows::download(EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream) const {
  RECMILL_RETURN_IF_ERROR(to_host(*records_, records_of(table), staging, stream));
  return to_host(*row_state_, row_state_of(table), staging, stream);
}

}  // namespace recmill::table
