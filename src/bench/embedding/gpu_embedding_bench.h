// SPDX-License-Identifier: Apache-2.0
// `recmill bench embedding --device cuda`: the workload that FBGEMM's and dynamicemb's tables are
// compared by (benchmark_results.json of NVIDIA's recsys-examples, of an H100): 10 tables,
// 1,048,570 ids in all, dimension 128, float32, Zipf 1.05, not pooled, all in the GPU's memory.
// Training is lookups, the search for distinct rows, sums of gradients and optimizer, for ids that
// are on the GPU. Times are of the GPU's own clock. With `--device emulated` it runs on the
// emulator, a thousandth as large: to see that it works; times are then no claim, and say so.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_gpu_embedding_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
