// SPDX-License-Identifier: Apache-2.0
// What a GpuStore takes, or a TableWiseGpuStore, before anything is allocated: of the GPU's memory,
// and of the host's.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/gpu/gpu.h"
#include "device/gpu/staged_arrays.h"
#include "kernels/schedule/schedule.h"
#include "schema/cluster_spec.h"
#include "schema/table_spec.h"
#include "store/gpu/rows_at.h"

namespace recmill::store {

/// Of a GPU's memory, and what is pinned for it of the host's, by rank.
struct GpuLedger {
  MemoryLedger device, pinned;
};

/// The largest batches that a store is given. Where not `certain`, they may all be smaller; those
/// that are not updated may in any case.
struct GpuBatches {
  struct Size {
    int64_t samples = 0;
    std::vector<int64_t> lookups = {};  // [features]
  };
  Size largest;          // of all
  Size trained;          // of those that are updated; no samples: none is
  int slices = 1;        // of these
  int64_t prepared = 1;  // at a time
  bool certain = true;
  bool on_host = true;  // looked-up rows go there, and gradients come from there
  std::span<const kernels::Schedule> pool = {};  // GpuStoreKernels
  std::span<const char> made_there = {};  // [features]: rows are made on the GPU; empty: none are
};

/// The item of rows that a hot set puts into the GPU's memory.
inline constexpr const char* kHotRows = "hot rows";

/// Of global batches, what one of so many ranks has at most; all lookups may be its.
GpuBatches part_of_rank(const GpuBatches& batches, int ranks);

/// Appends what such batches take, `need` by their sizes: for certain as much as those that are
/// updated, where they are certain.
void add_need(const std::string& what, const GpuBatches& batches,
              const std::function<GpuBytes(const GpuBatches::Size&)>& need, GpuLedger& ledger);

/// Beside the tables of the host (tables_need()), which rows in its memory are: rows in the GPU's
/// memory (those that a hot set puts there in one item, "hot rows"), and what batches take, as much
/// as `batches` says and no less. Frozen tables are not updated. Left out is what the driver takes
/// for itself and for kernels. Of one of several ranks: `batches` are the global ones; what
/// messages between GPUs take is an estimate. Without `rows`: of a store over slots, which are not
/// its own.
GpuLedger gpu_store_need(const ModelSpec& model, const GpuBatches& batches,
                         std::span<const RowsAt> rows, int rank = 0, int ranks = 1);

}  // namespace recmill::store
