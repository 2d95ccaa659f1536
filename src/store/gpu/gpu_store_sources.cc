// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/gpu_store_sources.h"

#include <algorithm>
#include <cstdint>

#include "kernels/codegen/gpu/gpu_distinct_source.h"
#include "table/embedding_table.h"

namespace recmill::store {

GpuStoreSources gpu_store_sources(const ModelSpec& model, const GpuStoreKernels& kernels,
                                  std::span<const RowsAt> rows) {
  GpuStoreSources sources;
  std::vector<kernels::RowStorage> layouts;
  std::vector<int64_t> slots;
  const auto near = [&](size_t table) -> const kernels::NearRows* {
    return rows.empty() ? nullptr : rows[table].near.get();
  };
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const TableSpec& table = model.tables[t];
    layouts.push_back(table::EmbeddingTable::layout(table, table::RowShare(table.rows, 0, 1)));
    slots.push_back(near(t) == nullptr ? table.rows : near(t)->slots());
    sources.updates.push_back(table::gpu_update_function(layouts.back(), table.optimizer,
                                                         kernels.slices, near(t) != nullptr));
  }
  for (size_t f = 0; f < model.features.size(); ++f) {
    const FeatureSpec& feature = model.features[f];
    const kernels::RowStorage& layout = layouts[feature.table];
    sources.lookups.push_back(kernels::codegen::gpu_pool_function(
        kernels.pool.empty() ? kernels::default_gpu_pool_schedule(feature.pooling, layout)
                             : kernels.pool[f],
        layout, feature.pooling, feature.weighted));
    sources.lookups.back().two_memories = near(static_cast<size_t>(feature.table)) != nullptr;
  }
  sources.fused.made_by = "Recmill";
  sources.fused.dispatch = kernels.dispatch;
  sources.fused.blocks = std::max<int64_t>(1, kernels.blocks);
  sources.keys = kernels::row_keys(slots);
  sources.finder = kernels::codegen::gpu_distinct_sources(sources.keys, "Recmill");
  sources.updater = table::gpu_update_sources(sources.updates, "Recmill");
  return sources;
}

}  // namespace recmill::store
