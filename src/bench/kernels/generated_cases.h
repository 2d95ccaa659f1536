// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bench/bench.h"
#include "run/resolved_run.h"

namespace recmill::bench {

/// The pre-built path (ours) against code generated for the tuned schedules, dispatched by branches
/// and by function pointers; what compiling it takes; and what one kernel with all branches, every
/// candidate of every feature, would: the third straw man of RecFlex (section II-C).
Status run_generated_case(const std::string& name, const train::ResolvedRun& run,
                          const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
