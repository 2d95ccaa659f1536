// SPDX-License-Identifier: Apache-2.0
// `bench comm`: sums over ranks.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

/// Started in several processes, of which the first 2 and 4 take turns: ordered_reduce of 16 MiB of
/// floats, bitwise the tree's sum, beside the message library's own all-reduce of the same vectors
/// and the time in which as many bytes, 2 n (W - 1) / W a rank, go to the next rank and come from
/// the one before at the same time: by TCP between hosts, by memcpy where all ranks are on one
/// host. Rank 0 reports milliseconds. A bad request of a single process.
Status run_comm_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
