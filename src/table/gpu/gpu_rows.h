// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "device/gpu/gpu.h"
#include "device/kernel_types.h"
#include "kernels/near_rows/near_rows.h"
#include "table/embedding_table.h"

namespace recmill::table {

/// A table's rows for a GPU, in its memory or the host's, laid out as the host's table has them. Of
/// a table in the host's memory some rows may be near, in the GPU's, too: these are the ones that
/// count, and their places in the host's memory are not used but for copies of them. Copies of this
/// are of the same memory.
class GpuRows {
 public:
  static constexpr size_t kStagingBytes = 16 << 20;  // of what rows are copied through

  /// Room for them, of any content; the table may have none yet. `near`: of GpuMemory::host, those
  /// in the GPU's memory. Fails, naming the table, where there is not so much.
  static Result<GpuRows> allocate(const EmbeddingTable& table, Gpu& gpu,
                                  GpuMemory where = GpuMemory::device,
                                  std::shared_ptr<const kernels::NearRows> near = nullptr);
  /// Bytes of the GPU's memory that numbers of so many near rows take, beside the rows.
  static int64_t bytes_of_numbers(const TableSpec& spec, int64_t near);

  /// Of slot 0.
  u8* records() const { return (near_ ? near_records_ : records_)->address<u8>(); }
  float* row_state() const {  // null: there is none
    return (near_ ? near_row_state_ : row_state_)->address<float>();
  }

  /// What slots are, where some rows are near; else null.
  const kernels::NearRows* near() const { return near_.get(); }
  /// Then, of the first slot that is far.
  u8* far_records() const { return records_->address<u8>(); }
  float* far_row_state() const { return row_state_->address<float>(); }
  /// Then, of the GPU, which row is in each near slot; of rows that are rounded, else null.
  const i64* row_of_near_slot() const { return numbers_->address<i64>(); }

  /// Of GpuMemory::host, for a table of the host to be in the same memory: then there is nothing
  /// to be copied. Cleared first.
  TableRoom room_of_zeros();
  bool is_where(const EmbeddingTable& table) const {
    return records_->address<std::byte>() == table.rows().data;
  }

  /// Copies all rows that are elsewhere from the table, or to it, through `staging`; returns when
  /// that is done.
  Status upload(const EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream);
  Status download(EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream) const;

 private:
  Status upload_near(const EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream);
  Status download_near(EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream) const;

  std::shared_ptr<GpuBuffer> records_, row_state_;  // of all rows
  std::shared_ptr<const kernels::NearRows> near_;
  std::shared_ptr<GpuBuffer> near_records_, near_row_state_, numbers_;
};

}  // namespace recmill::table
