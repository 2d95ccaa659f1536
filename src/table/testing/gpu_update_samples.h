// SPDX-License-Identifier: Apache-2.0
// A fused row update for GPUs that tests run: every optimizer, every precision, rows of one element
// and of many.
#pragma once

#include <array>
#include <vector>

#include "schema/table_spec.h"
#include "table/gpu/gpu_update_source.h"

namespace recmill::table {

/// Tables of 50 rows.
std::vector<TableSpec> gpu_update_specs();
/// Of the table of this name some rows are near, and others far.
inline constexpr const char* kTwoMemories = "two_memories";
/// Of one table.
GpuUpdateFunction gpu_update_function(const TableSpec& spec);
/// The sources for all of them.
std::vector<GpuUpdateSource> gpu_update_samples();

/// A table whose rows are updated by every way that there is, and its source: small, as it is
/// compiled once for each barrier and atomic that is taken out of it.
TableSpec gpu_update_spec_of_all_ways();
GpuUpdateSource gpu_update_sample_of_all_ways();

// Their kernels, compiled, as the emulator calls them.
void gpu_update_entry_0(const void* arguments);
void gpu_update_entry_1(const void* arguments);
void gpu_update_entry_2(const void* arguments);
void gpu_update_entry_3(const void* arguments);
void gpu_update_entry_4(const void* arguments);
void gpu_update_entry_5(const void* arguments);
void gpu_update_entry_6(const void* arguments);
inline constexpr std::array kGpuUpdateEntries{
    &gpu_update_entry_0, &gpu_update_entry_1, &gpu_update_entry_2, &gpu_update_entry_3,
    &gpu_update_entry_4, &gpu_update_entry_5, &gpu_update_entry_6};

}  // namespace recmill::table
