// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "bench/bench.h"

namespace recmill::bench {

/// Of `bench server`, on 6 processes: ranks whose rows are at servers, with a cache and without.
Status run_server_cached_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
