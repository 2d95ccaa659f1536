// SPDX-License-Identifier: Apache-2.0
// How near the search for few partitions comes to the best placement.
// `optimality_{50,100,200}`: the slowest device's time for the finest partitions, so many at most,
// of the 6, 12 and 26 largest tables of Kaggle's shape, each in one place of 4 devices that have 5
// % more memory than rows take; `..._copies`: with copies. The limit is the bound that HiGHS proves
// in 60 seconds (options.solver_seconds), below which no placement of these partitions is; the
// rival is the placement that HiGHS finds meanwhile, with copies starting from ours.
// `optimality_8x3`, `optimality_8x3_copies`: of 100 random problems of 8 partitions on 3 devices
// with unequal links the one where ours is the farthest from the best placement: its time in units
// of that one's.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_optimality_cases(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
