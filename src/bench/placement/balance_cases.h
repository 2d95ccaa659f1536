// SPDX-License-Identifier: Apache-2.0
// How even OPER's plans are, and what making them takes. `balance_SHAPE_ZIPF_{0,1,5}pct`: degrees
// of balance on 8 devices with so much extra memory; `balance_..._other_seed`: the same plan by
// counts of other samples. `plan_time_SHAPE_ZIPF_{0,5}pct`: seconds from the file of counts to the
// plan, and the process's largest resident memory meanwhile.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_balance_cases(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
