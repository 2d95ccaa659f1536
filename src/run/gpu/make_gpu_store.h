// SPDX-License-Identifier: Apache-2.0
// A run whose rows are stored on GPUs, one for each rank.
#pragma once

#include <memory>

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "run/gpu/gpu_run.h"
#include "run/lookahead/home_start.h"
#include "run/resolved_run.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// A run's store, and what it leaves to its cache.
struct GpuRunStore {
  std::unique_ptr<store::EmbeddingStore> store;
  HomeStart home = {};
  int64_t cache = 0;  // bytes of the GPU's memory that slots may take, of the cached store
};

/// The store of a run with device = "cuda" or "emulated", with the schedules that [kernels] asks
/// for: store::GpuStore or store::CachedGpuStore, or of several ranks store::TableWiseGpuStore.
/// Fails in one line: no tuning record that is good for this run, not enough memory
/// (check_gpu_memory()), windows between hosts. Where gpu.rows has rows in the host's memory, a
/// line of the log says which. Collective; before the rank takes memory of its GPU for anything
/// else.
Result<GpuRunStore> make_gpu_store(const ResolvedRun& run, const RankGpu& of,
                                   Communicator& communicator, ThreadPool& pool, Files& files);

}  // namespace recmill::train
