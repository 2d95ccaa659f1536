// SPDX-License-Identifier: Apache-2.0
// Forward passes of a workload's test batches: tuned and fused, against every rival.
#pragma once

#include <string>

#include "bench/bench.h"
#include "run/resolved_run.h"

namespace recmill::bench {

/// Against other systems, one schedule for all features, other ways to tune and to map; how near
/// the memory's limit and the tuner's prediction it is, and what counting and mapping cost.
Status run_forward_case(const std::string& name, const train::ResolvedRun& run,
                        const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
