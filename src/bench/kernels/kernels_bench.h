// SPDX-License-Identifier: Apache-2.0
// Tuned and fused embedding kernels against other systems, other schedules and other mappings.
#pragma once

#include <string>
#include <vector>

#include "bench/bench.h"

namespace recmill::bench {

/// Cases are a workload's name with a suffix that says what is timed: _fwd ...
Status run_kernels_bench(const BenchOptions& options, const BenchSink& sink);

/// The cases of a figure of RecFlex (SC 2024), or of all; with `quick` a few of them.
std::vector<std::string> kernels_cases(int64_t figure, bool quick);

}  // namespace recmill::bench
