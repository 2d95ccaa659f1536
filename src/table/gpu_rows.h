// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/gpu/gpu.h"
#include "device/kernel_types.h"
#include "table/embedding_table.h"

namespace recmill::table {

/// A table's rows in the memory of a GPU, laid out as the host has them.
class GpuRows {
 public:
  /// Room for them. Fails, naming the table, where there is not so much.
  static Result<GpuRows> allocate(const EmbeddingTable& table, Gpu& gpu);

  u8* records() const { return records_.address<u8>(); }
  float* row_state() const { return row_state_.address<float>(); }  // null: there is none

  /// Copies all rows to the GPU, or from it, through `staging`; returns when that is done.
  Status upload(const EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream);
  Status download(EmbeddingTable& table, PinnedBuffer& staging, GpuStream& stream) const;

 private:
  GpuBuffer records_, row_state_;
};

}  // namespace recmill::table
