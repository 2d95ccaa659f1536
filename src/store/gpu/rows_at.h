// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/gpu/gpu.h"
#include "hotset_plan/hot_set.h"
#include "kernels/near_rows/near_rows.h"
#include "schema/table_spec.h"

namespace recmill::store {

/// Where a GPU's store has the rows of one table.
struct RowsAt {
  RowsAt(GpuMemory of_table = GpuMemory::device) : memory(of_table) {}

  GpuMemory memory;
  /// Of GpuMemory::host: rows that are in the GPU's memory all the same; null: none.
  std::shared_ptr<const kernels::NearRows> near = nullptr;
  bool by_hot_set = false;

  /// Of a table of so many rows, those in the GPU's memory.
  int64_t near_rows(int64_t rows) const {
    if (near != nullptr) return near->near();
    return memory == GpuMemory::device ? rows : 0;
  }
};

/// [tables] As the hot set says, which is one of the model's: hot rows in the GPU's memory, others
/// in the host's. Tables of one kind of rows alone are in one memory. Of tables that are not held,
/// all in the host's.
std::vector<RowsAt> rows_by_hot_set(const HotSet& set, std::span<const int> held);
std::vector<RowsAt> rows_by_hot_set(const HotSet& set);

}  // namespace recmill::store
