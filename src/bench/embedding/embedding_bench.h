// SPDX-License-Identifier: Apache-2.0
// `recmill bench embedding`: one training step of all tables of a batch (distinct rows, lookup,
// backward and row optimizer) against FBGEMM's CPU tables and PyTorch's EmbeddingBag; and lookups
// of random rows against what the memory gives. With --device another on a GPU
// (gpu_embedding_bench.h).
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_embedding_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
