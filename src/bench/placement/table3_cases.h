// SPDX-License-Identifier: Apache-2.0
// OPER's table 3, on Kaggle's shape with 5 % extra memory: `table3_kaggle_ZIPF_THRESHOLD`: seconds
// of the planner at thresholds that it may not refine, the largest and the smallest communication
// of a device, and its degree of balance. `table3_kaggle_ZIPF_highs_5pct`: the same of HiGHS, which
// has the 5 % threshold's partitions and ten minutes (options.solver_seconds), and of OPER at 0.1 %
// beside it.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_table3_cases(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
