// SPDX-License-Identifier: Apache-2.0
// OPER's table 2: bytes that a device gets from another one in a batch, by extra memory, on 8
// devices. `table2_SHAPE_ZIPF_{0,1,2,5,10,15,20}pct`: rows of the forward pass, each as often as it
// is looked up; `..._dedup`: each once a batch; `..._training`, `..._training_dedup`: rows and
// gradients; `..._other_seed`: rows of the forward pass by counts of other samples than the plan's,
// as copies of rows that were seen by chance save nothing later.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_table2_cases(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
