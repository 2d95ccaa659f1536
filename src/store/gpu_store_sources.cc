// SPDX-License-Identifier: Apache-2.0
#include "store/gpu_store_sources.h"

#include <cstdint>

#include "kernels/codegen/gpu_distinct_source.h"
#include "table/embedding_table.h"

namespace recmill::store {

GpuStoreSources gpu_store_sources(const ModelSpec& model, int shards) {
  GpuStoreSources sources;
  std::vector<int64_t> rows;
  for (const TableSpec& table : model.tables) {
    rows.push_back(table.rows);
    const auto layout = table::EmbeddingTable::layout(table, table::RowShare(table.rows, 0, 1));
    sources.updates.push_back(table::gpu_update_function(layout, table.optimizer.kind, shards));
  }
  sources.keys = kernels::row_keys(rows);
  sources.finder = kernels::codegen::gpu_distinct_sources(sources.keys, "Recmill");
  sources.updater = table::gpu_update_sources(sources.updates, "Recmill");
  return sources;
}

}  // namespace recmill::store
