// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/rows_at.h"

namespace recmill::store {

std::vector<RowsAt> rows_by_hot_set(const HotSet& set) {
  std::vector<RowsAt> places;
  for (const HotTable& table : set.tables) {
    RowsAt& at =
        places.emplace_back(table.hot() == table.rows ? GpuMemory::device : GpuMemory::host);
    at.by_hot_set = true;
    if (at.memory == GpuMemory::host && table.hot() > 0)
      at.near = std::make_shared<const kernels::NearRows>(table.rows, table.hot_rows);
  }
  return places;
}

}  // namespace recmill::store
