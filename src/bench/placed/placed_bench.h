// SPDX-License-Identifier: Apache-2.0
// `bench placed`: plans of several planners carried out by the placed store, on ranks over MPI.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

/// Started in several processes, a rank each: 26 tables of Criteo Kaggle's rows, 250,000 at most,
/// of dimension 64; 4,096 samples a rank, of Zipf's law at 1.2; row-wise Adagrad; no layers. Rows
/// are counted in other samples than are timed. With de-duplication and without: seconds of a
/// batch's lookups (forward and inference, which differ by OPER's plan) and of lookups and updates
/// (training), ids' preparation left out, with what was sent; OPER's plan beside those of other
/// planners, all through the same store in turns. Then OPER's figure 9 (a), inference: what a call
/// for all tables, rows that are balanced, 5 % of memory for duplicates, local rows read while
/// remote ones come, and de-duplication bring, each alone and one after the other, beside a plan by
/// tables with none of them. What is looked up must be bitwise the same whatever the plan, in
/// training after an update as well. Then end_to_end_cases.h, host_cases.h and drift_cases.h. Rank
/// 0 reports. A bad request of a single process.
Status run_placed_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
