// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/rows_at.h"

#include <numeric>

namespace recmill::store {

std::vector<RowsAt> rows_by_hot_set(const HotSet& set, std::span<const int> held) {
  std::vector<RowsAt> places(set.tables.size(), GpuMemory::host);
  for (const int t : held) {
    const HotTable& table = set.tables[t];
    places[t].by_hot_set = true;
    if (table.hot() == table.rows) {
      places[t].memory = GpuMemory::device;
    } else if (table.hot() > 0) {
      places[t].near = std::make_shared<const kernels::NearRows>(table.rows, table.hot_rows);
    }
  }
  return places;
}

std::vector<RowsAt> rows_by_hot_set(const HotSet& set) {
  std::vector<int> all(set.tables.size());
  std::iota(all.begin(), all.end(), 0);
  return rows_by_hot_set(set, all);
}

}  // namespace recmill::store
