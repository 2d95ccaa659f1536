// SPDX-License-Identifier: Apache-2.0
// OPER's figure 6: whole training iterations and whole answers by plans of several planners.
#pragma once

#include "bench/bench.h"
#include "comm/communicator.h"

namespace recmill::bench {

/// Collective. `end_to_end_{training,inference}_{avazu,kaggle,terabyte}`: a DLRM 512-256-64-d and
/// 512-256-1 over the shape's tables, of 250,000 rows at most and its own dimension d, 4,096
/// samples a rank, each lookup fetched by itself, as the paper's systems do. From rows in memory to
/// updated parameters and rows, or to probabilities: preparation of ids, which training does ahead,
/// is within. OPER's plan beside those of other planners, in turns. Losses must be bitwise the
/// same. The first rank reports.
Status run_end_to_end_cases(const BenchOptions& options, Communicator& all, const BenchSink& sink);

}  // namespace recmill::bench
