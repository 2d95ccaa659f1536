// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bench/bench.h"
#include "run/resolved_run.h"

namespace recmill::bench {

/// A whole pass of a workload's model, pooled rows and fully connected layers, as a server makes it
/// (RecFlex, figure 10): wall time, and the time of lookups and layers alone, against PyTorch.
Status run_mlp_case(const std::string& name, const train::ResolvedRun& run,
                    const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
