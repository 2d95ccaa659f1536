// SPDX-License-Identifier: Apache-2.0
// What decides where rows are placed: counting their accesses, and planning by the counts.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_placement_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
