// SPDX-License-Identifier: Apache-2.0
// How near the search for few partitions comes to the best placement.
//   optimality_{50,100,200}          the slowest device's time for the finest partitions of
//   Kaggle's
//                                    shape that are so many at most, on 4 devices, each in one
//                                    place; `limit` is the bound that HiGHS proves in 60 seconds
//                                    (options.solver_seconds), below which no placement of these
//                                    partitions is
//   optimality_{50,100,200}_copies   the same with copies in 5 % extra memory
//   optimality_8x3{,_copies}         the worst of 100 random problems of 8 partitions on 3 devices
//                                    with unequal links: its time in units of the best one's
#pragma once

#include "cli/bench/bench.h"

namespace recmill::cli {

Status run_optimality_cases(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::cli
