// SPDX-License-Identifier: Apache-2.0
// The kernels that a GpuStore loads beside those of its lookups. Pure.
#pragma once

#include <vector>

#include "kernels/codegen/gpu_source.h"
#include "kernels/distinct_rows/gpu_distinct_rows.h"
#include "schema/table_spec.h"
#include "table/gpu_update_source.h"

namespace recmill::store {

struct GpuStoreSources {
  kernels::RowKeys keys;                            // that distinct rows are found by
  std::vector<kernels::codegen::GpuSource> finder;  // [kernels::kDistinctSteps]
  std::vector<table::GpuUpdateFunction> updates;    // [tables]
  std::vector<table::GpuUpdateSource> updater;      // of them
};

/// Of batches of at most so many shards.
GpuStoreSources gpu_store_sources(const ModelSpec& model, int shards);

}  // namespace recmill::store
