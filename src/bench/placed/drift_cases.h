// SPDX-License-Identifier: Apache-2.0
// `bench placed`, cases `drift_dedup` and `drift_nodedup`: lookups that change while rows train.
#pragma once

#include "bench/bench.h"
#include "comm/communicator.h"

namespace recmill::bench {

/// On the tables of `bench placed` and at its batch size, training without layers, by OPER's plan
/// for inference where rows are fetched once, by that for training where every lookup is: after a
/// third of the iterations all rows are looked up as others were. A run that replans each window of
/// iterations; beside it, not timed, one whose rows stay where they are, which must look up the
/// same bits. Of the first: the median iteration, ids' preparation and all that replanning does
/// between iterations included, the longest ones, bytes sent before the change, until the new plan
/// is in force, and after, and the share of time that counting took. Collective; rank 0 reports.
Status run_drift_cases(const BenchOptions& options, Communicator& all, const BenchSink& sink);

}  // namespace recmill::bench
