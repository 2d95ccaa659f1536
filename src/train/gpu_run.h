// SPDX-License-Identifier: Apache-2.0
// A run whose rows stand on a GPU.
#pragma once

#include <memory>

#include "base/files.h"
#include "base/status.h"
#include "device/pool.h"
#include "store/embedding_store.h"
#include "train/resolved_run.h"

namespace recmill::train {

/// The store of a run with device = "cuda" or "emulated". Fails in one line: no driver or one that
/// is too old, no compiler of kernels, not enough memory.
Result<std::unique_ptr<store::EmbeddingStore>> make_gpu_store(const ResolvedRun& run, Pool& pool,
                                                              Files& files);

}  // namespace recmill::train
