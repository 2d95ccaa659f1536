// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/placement_bench.h"

#include "bench/placement/balance_cases.h"
#include "bench/placement/counting_cases.h"
#include "bench/placement/figure10_cases.h"
#include "bench/placement/heterogeneous_cases.h"
#include "bench/placement/mapping_cases.h"
#include "bench/placement/optimality_cases.h"
#include "bench/placement/table2_cases.h"
#include "bench/placement/table3_cases.h"

namespace recmill::bench {

Status run_placement_bench(const BenchOptions& options, const BenchSink& sink) {
  for (const auto& run :
       {run_counting_cases, run_balance_cases, run_table2_cases, run_table3_cases,
        run_optimality_cases, run_heterogeneous_cases, run_figure10_cases, run_mapping_cases})
    RECMILL_RETURN_IF_ERROR(run(options, sink));
  return {};
}

}  // namespace recmill::bench
