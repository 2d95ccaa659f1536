// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/bench.h"
#include "device/thread_pool.h"

namespace recmill::bench {

/// BagPipe's figures 3, 4, 17, 18 and 19, and table 3: rows and bytes that are counted, and times
/// of the oracle alone.
Status run_oracle_figures(const BenchOptions& options, ThreadPool& pool, const BenchSink& sink);

}  // namespace recmill::bench
