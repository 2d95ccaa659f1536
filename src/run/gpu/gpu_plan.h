// SPDX-License-Identifier: Apache-2.0
// What ranks take of their GPU's memory, held against what it has. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "run/resolved_run.h"
#include "store/gpu/gpu_memory.h"
#include "store/gpu/held_tables.h"

namespace recmill::train {

/// Where the rows of a rank are stored, and what it takes then.
struct GpuPlan {
  int rank = 0;
  store::HeldTables held;           // of the rank
  std::vector<store::RowsAt> rows;  // [tables]; of a cache none
  store::GpuLedger need;
  int64_t cache = 0;  // bytes of its memory that slots have, of the cached store
};

/// Refuses plans of the ranks of one GPU that together take more for certain than the usable bytes
/// of its memory, in one line that names what is largest.
Status check_gpu_memory(const ResolvedRun& run, std::span<const GpuPlan> plans, int64_t usable);

}  // namespace recmill::train
