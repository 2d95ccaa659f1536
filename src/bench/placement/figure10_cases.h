// SPDX-License-Identifier: Apache-2.0
// OPER's figure 10: `figure10_SHAPE_ZIPF_PLANNER`: the largest, smallest and mean memory, lookups
// and communication of a device, and communication of a pair, of 8 devices. OPER has 5 % extra
// memory.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_figure10_cases(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
