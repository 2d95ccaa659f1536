// SPDX-License-Identifier: Apache-2.0
#include "table/gpu/gpu_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace recmill::table {
namespace {

std::span<std::byte> records_of(const EmbeddingTable& table) {
  const kernels::RowStorage& rows = table.rows();
  return {rows.data, static_cast<size_t>(rows.count * rows.stride)};
}
std::span<std::byte> row_state_of(const EmbeddingTable& table) {
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

Status to_gpu(std::span<const std::byte> from, GpuBuffer& to, PinnedBuffer& staging,
              GpuStream& stream) {
  return in_pieces(from.size(), staging.size(), [&](size_t at, size_t size) {
    std::memcpy(staging.as<std::byte>().data(), from.data() + at, size);
    RECMILL_RETURN_IF_ERROR(stream.to_device(to, staging, size, at));
    return stream.synchronize();
  });
}
Status to_host(const GpuBuffer& from, std::span<std::byte> to, PinnedBuffer& staging,
               GpuStream& stream) {
  return in_pieces(to.size(), staging.size(), [&](size_t at, size_t size) -> Status {
    RECMILL_RETURN_IF_ERROR(stream.to_host(staging, from, size, 0, at));
    RECMILL_RETURN_IF_ERROR(stream.synchronize());
    std::memcpy(to.data() + at, staging.as<std::byte>().data(), size);
    return {};
  });
}

bool is_rounded(const TableSpec& spec) {
  return spec.precision != RowPrecision::float32 && !spec.frozen;
}

/// What a table has for each row, of `size` bytes: the near rows' in turn.
struct Column {
  std::byte* data = nullptr;
  size_t size = 0;

  std::byte* of(int64_t row) const { return data + static_cast<size_t>(row) * size; }
};

/// Calls copy(first, count) for so many near rows as fit the staging memory.
template <class Copy>
Status in_parts(size_t rows, size_t size, size_t staging, const Copy& copy) {
  const size_t most = staging / std::max<size_t>(1, size);
  RECMILL_CHECK(most > 0, "rows larger than what they are copied through");
  for (size_t first = 0; first < rows; first += most)
    RECMILL_RETURN_IF_ERROR(copy(first, std::min(most, rows - first)));
  return {};
}

Status near_to_gpu(std::span<const int64_t> near, const Column& from, GpuBuffer& to,
                   PinnedBuffer& staging, GpuStream& stream) {
  std::byte* const room = staging.as<std::byte>().data();
  return in_parts(near.size(), from.size, staging.size(), [&](size_t first, size_t count) {
    for (size_t i = 0; i < count; ++i)
      std::memcpy(room + i * from.size, from.of(near[first + i]), from.size);
    RECMILL_RETURN_IF_ERROR(stream.to_device(to, staging, count * from.size, first * from.size));
    return stream.synchronize();
  });
}
Status near_to_host(std::span<const int64_t> near, const GpuBuffer& from, const Column& to,
                    PinnedBuffer& staging, GpuStream& stream) {
  const std::byte* const room = staging.as<std::byte>().data();
  return in_parts(near.size(), to.size, staging.size(), [&](size_t first, size_t count) -> Status {
    RECMILL_RETURN_IF_ERROR(stream.to_host(staging, from, count * to.size, 0, first * to.size));
    RECMILL_RETURN_IF_ERROR(stream.synchronize());
    for (size_t i = 0; i < count; ++i)
      std::memcpy(to.of(near[first + i]), room + i * to.size, to.size);
    return {};
  });
}

Column record_column(const EmbeddingTable& table) {
  return {table.rows().data, static_cast<size_t>(table.rows().stride)};
}
Column state_column(const EmbeddingTable& table) {
  auto* const state = reinterpret_cast<std::byte*>(table.rows().row_state);
  return {state, state == nullptr ? 0 : sizeof(float)};
}

struct RowBuffers {
  std::shared_ptr<GpuBuffer> records, row_state;
};

Result<RowBuffers> allocate_rows(const EmbeddingTable& table, int64_t rows, size_t all, Gpu& gpu,
                                 GpuMemory where) {
  const std::string what = "table " + table.spec().name;
  const auto records = static_cast<size_t>(rows * table.rows().stride);
  GpuBuffer of_records, of_state;
  RECMILL_ASSIGN_OR_RETURN(of_records, gpu.allocate(records, what, where));
  if (const size_t state = all - records; state > 0) {
    RECMILL_ASSIGN_OR_RETURN(of_state, gpu.allocate(state, what, where));
  }
  return RowBuffers{std::make_shared<GpuBuffer>(std::move(of_records)),
                    std::make_shared<GpuBuffer>(std::move(of_state))};
}

}  // namespace

Result<GpuRows> GpuRows::allocate(const EmbeddingTable& table, Gpu& gpu, GpuMemory where,
                                  std::shared_ptr<const kernels::NearRows> near) {
  const TableSpec& spec = table.spec();
  const int64_t all = EmbeddingTable::bytes(spec, {table.share(), table.column_split()});
  GpuRows rows;
  RECMILL_ASSIGN_OR_RETURN(RowBuffers own, allocate_rows(table, table.rows().count,
                                                         static_cast<size_t>(all), gpu, where));
  rows.records_ = std::move(own.records);
  rows.row_state_ = std::move(own.row_state);
  if (near == nullptr) return rows;
  RECMILL_CHECK(where == GpuMemory::host && near->rows() == table.rows().count, spec.name);
  RECMILL_ASSIGN_OR_RETURN(
      RowBuffers of_near,
      allocate_rows(table, near->near(),
                    static_cast<size_t>(EmbeddingTable::bytes(spec, RowShare(near->near(), 0, 1))),
                    gpu, GpuMemory::device));
  rows.near_records_ = std::move(of_near.records);
  rows.near_row_state_ = std::move(of_near.row_state);
  GpuBuffer numbers;
  if (const int64_t bytes = bytes_of_numbers(spec, near->near()); bytes > 0) {
    RECMILL_ASSIGN_OR_RETURN(numbers,
                             gpu.allocate(static_cast<size_t>(bytes), "table " + spec.name));
  }
  rows.numbers_ = std::make_shared<GpuBuffer>(std::move(numbers));
  rows.near_ = std::move(near);
  return rows;
}

int64_t GpuRows::bytes_of_numbers(const TableSpec& spec, int64_t near) {
  return is_rounded(spec) ? near * int64_t{sizeof(i64)} : 0;
}

TableRoom GpuRows::room_of_zeros() {
  std::memset(far_records(), 0, records_->size());
  if (far_row_state() != nullptr) std::memset(far_row_state(), 0, row_state_->size());
  return {reinterpret_cast<std::byte*>(far_records()), far_row_state()};
}

Status GpuRows::upload_near(const EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream) {
  const auto near = near_->near_rows();
  RECMILL_RETURN_IF_ERROR(near_to_gpu(near, record_column(table), *near_records_, staging, stream));
  if (near_row_state_->size() > 0)
    RECMILL_RETURN_IF_ERROR(
        near_to_gpu(near, state_column(table), *near_row_state_, staging, stream));
  return to_gpu(std::as_bytes(near).first(numbers_->size()), *numbers_, staging, stream);
}

Status GpuRows::download_near(EmbeddingTable& table, PinnedBuffer& staging,
                              GpuStream& stream) const {
  const auto near = near_->near_rows();
  RECMILL_RETURN_IF_ERROR(
      near_to_host(near, *near_records_, record_column(table), staging, stream));
  if (near_row_state_->size() == 0) return {};
  return near_to_host(near, *near_row_state_, state_column(table), staging, stream);
}

Status GpuRows::upload(const EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream) {
  if (!is_where(table)) {
    RECMILL_RETURN_IF_ERROR(to_gpu(records_of(table), *records_, staging, stream));
    RECMILL_RETURN_IF_ERROR(to_gpu(row_state_of(table), *row_state_, staging, stream));
  }
  return near_ == nullptr ? Status() : upload_near(table, staging, stream);
}

Status GpuRows::download(EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream) const {
  if (!is_where(table)) {
    RECMILL_RETURN_IF_ERROR(to_host(*records_, records_of(table), staging, stream));
    RECMILL_RETURN_IF_ERROR(to_host(*row_state_, row_state_of(table), staging, stream));
  }
  return near_ == nullptr ? Status() : download_near(table, staging, stream);
}

}  // namespace recmill::table
