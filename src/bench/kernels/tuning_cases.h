// SPDX-License-Identifier: Apache-2.0
// What tuning itself costs, and what little time for it costs.
#pragma once

#include <string>

#include "bench/bench.h"
#include "run/resolved_run.h"

namespace recmill::bench {

/// Tunes the workload twice: for as long as it takes, whose seconds and peak memory are lines, and
/// in 60 s; then both results take turns.
Status run_tuning_case(const std::string& name, const train::ResolvedRun& run,
                       const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
