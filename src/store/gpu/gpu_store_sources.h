// SPDX-License-Identifier: Apache-2.0
// The kernels that a GpuStore loads. Pure.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/codegen/gpu/compiled_gpu_pool.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "kernels/distinct_rows/gpu_distinct_rows.h"
#include "schema/table_spec.h"
#include "store/gpu/rows_at.h"
#include "table/gpu/gpu_update_source.h"

namespace recmill::store {

/// The schedules of a store's lookups, and how its kernels are made.
struct GpuStoreKernels {
  std::vector<kernels::Schedule> pool = {};  // [features]; empty: the default ones
  int64_t blocks = 0;                        // of an SM, that they were chosen for; 0: any number
  kernels::codegen::Dispatch dispatch = kernels::codegen::Dispatch::branches;
  int slices = 1024;  // of a global batch, at most
  kernels::codegen::CompileForGpu compile;
};

struct GpuStoreSources {
  std::vector<kernels::codegen::PoolFunction> lookups;  // [features]
  kernels::codegen::GpuPoolSourceOptions fused;         // their kernels
  kernels::RowKeys keys;                                // that distinct rows are found by
  std::vector<kernels::codegen::GpuSource> finder;      // [kernels::kDistinctSteps]
  std::vector<table::GpuUpdateFunction> updates;        // [tables]
  std::vector<table::GpuUpdateSource> updater;          // of them
};

/// `rows` [tables], as GpuStore::create() has them; empty: each table is in one memory.
GpuStoreSources gpu_store_sources(const ModelSpec& model, const GpuStoreKernels& kernels,
                                  std::span<const RowsAt> rows = {});

}  // namespace recmill::store
