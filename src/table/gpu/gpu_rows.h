// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "device/gpu/gpu.h"
#include "device/kernel_types.h"
#include "table/embedding_table.h"

namespace recmill::table {

/// A table's rows for a GPU, in its memory or the host's, laid out as the host's table has them.
/// Copies are of the same memory.
class GpuRows {
 public:
  static constexpr size_t kStagingBytes = 16 << 20;  // of what rows are copied through

  /// Room for them, of any content; the table may have none yet. Fails, naming the table, where
  /// there is not so much.
  static Result<GpuRows> allocate(const EmbeddingTable& table, Gpu& gpu,
                                  GpuMemory where = GpuMemory::device);

  u8* records() const { return records_->address<u8>(); }
  float* row_state() const { return row_state_->address<float>(); }  // null: there is none

  /// Of GpuMemory::host, for a table of the host to be in the same memory: then there is nothing
  /// to be copied. Cleared first.
  TableRoom room_of_zeros();
  bool is_where(const EmbeddingTable& table) const {
    return reinterpret_cast<const std::byte*>(records()) == table.rows().data;
  }

  /// Copies all rows from the table, or to it, through `staging`; returns when that is done.
  Status upload(const EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream);
  Status download(EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream) const;

 private:
  std::shared_ptr<GpuBuffer> records_, row_state_;
};

}  // namespace recmill::table
