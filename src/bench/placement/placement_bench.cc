// SPDX-License-Identifier: Apache-2.0
// What decides where rows are placed: counting their accesses, and planning by the counts.
#include "bench/benches.h"
#include "bench/placement/placement_cases.h"

namespace recmill::bench {

Status run_placement_bench(const BenchOptions& options, const BenchSink& sink) {
  for (const auto& run :
       {run_counting_cases, run_balance_cases, run_table2_cases, run_table3_cases,
        run_optimality_cases, run_heterogeneous_cases, run_figure10_cases, run_mapping_cases})
    RECMILL_RETURN_IF_ERROR(run(options, sink));
  return {};
}

}  // namespace recmill::bench
