// SPDX-License-Identifier: Apache-2.0
// Whether the tuner chose well: one feature's schedule exchanged inside the fused run (RecFlex,
// figure 12), and all combinations of a few (the holistic straw man of section II-C as an oracle).
#pragma once

#include <string>

#include "bench/bench.h"
#include "run/resolved_run.h"

namespace recmill::bench {

/// The three features with the largest share of the time and three at random: every other candidate
/// of the tuned value in place of the chosen one, judged by that feature's own task time there,
/// and the chosen one, the best and the worst again.
Status run_mutation_case(const std::string& name, const train::ResolvedRun& run,
                         const BenchOptions& options, const BenchSink& sink);

/// The three features with the largest share of the time, each with its chosen schedule and three
/// others: all 64 combinations fused, judged by the three features' task time and by the whole.
Status run_oracle_case(const std::string& name, const train::ResolvedRun& run,
                       const BenchOptions& options, const BenchSink& sink);

/// Every candidate of one feature of each class, as the tuner timed it at the value that it chose
/// (RecFlex, figure 3, for features of unlike bags).
Status run_schedules_case(const std::string& name, const train::ResolvedRun& run,
                          const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
