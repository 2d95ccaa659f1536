// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/placement/placement_bench.h"

#include "cli/bench/placement/balance_cases.h"
#include "cli/bench/placement/counting_cases.h"
#include "cli/bench/placement/table2_cases.h"

namespace recmill::cli {

Status run_placement_bench(const BenchOptions& options, const BenchSink& sink) {
  RECMILL_RETURN_IF_ERROR(run_counting_cases(options, sink));
  RECMILL_RETURN_IF_ERROR(run_balance_cases(options, sink));
  return run_table2_cases(options, sink);
}

}  // namespace recmill::cli
