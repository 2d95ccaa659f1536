// SPDX-License-Identifier: Apache-2.0
// A fused row update for GPUs that tests run: every optimizer, every precision, rows of one element
// and of many.
#pragma once

#include <vector>

#include "schema/table_spec.h"
#include "table/gpu_update_source.h"

namespace recmill::table {

/// Tables of 50 rows.
std::vector<TableSpec> gpu_update_specs();
/// Of one table.
GpuUpdateFunction gpu_update_function(const TableSpec& spec);
/// The one source for all of them.
GpuUpdateSource gpu_update_sample();
/// Its kernel, compiled, as the emulator calls it.
void gpu_update_entry(const void* arguments);

}  // namespace recmill::table
