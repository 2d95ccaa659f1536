// SPDX-License-Identifier: Apache-2.0
// `bench scaling`: the workload of `bench train` at a batch of 16,384 on 1, 2 and 4 ranks.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

/// Started in several processes, of which the first 1, 2 and 4 take turns: the ranks share
/// options.threads, at least one each. Batches are in memory; each iteration finds distinct rows,
/// looks up, goes forward and backward, and updates. Parameters must be bitwise those of one rank.
/// Several ranks sum dense gradients before they update rows, as training does on one host, and in
/// turns with that ("_overlap") meanwhile, as it does on several. For each: samples a second,
/// beside 1 rank with all threads; and for several, the share of time that waits for dense
/// gradients, and how much of it overlap hides. Rank 0 reports. A bad request of a single process.
Status run_scaling_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
