// SPDX-License-Identifier: Apache-2.0
// Cases of `bench placed` beside those of its own file.
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

/// Collective. `end_to_end_{training,inference}_{avazu,kaggle,terabyte}`: a DLRM 512-256-64-d and
/// 512-256-1 over the shape's tables, of 250,000 rows at most and its own dimension d, 4,096
/// samples a rank, each lookup fetched by itself, as the paper's systems do. From rows in memory to
/// updated parameters and rows, or to probabilities: preparation of ids, which training does ahead,
/// is within. OPER's plan beside those of other planners, in turns. Losses must be bitwise the
/// same. The first rank reports.
Status run_end_to_end_cases(const BenchOptions& options, Communicator& all, const BenchSink& sink);

/// Collective, of two ranks that share memory; else there are none. 26 tables of the Kaggle shape
/// with 250,000 rows at most, dimension 64, row-wise Adagrad, Zipf 1.2, batch 4,096 a rank, rows
/// where OPER or row-wise splitting places them; beside it, in turns, the local store of one rank
/// with all threads and batch 8,192, on the same cores. What is looked up must be bitwise the same.
/// The first rank reports.
///   host_placed_{forward,training}_{oper,row_wise}
///       time of a batch of prepared lookups, or of these and their update
///   prepare_{oper,row_wise}
///       time of prepare(), and what it takes more than the local store's as a share of an
///       iteration of prepared lookups and updates, and of one of a DLRM
Status run_host_cases(const BenchOptions& options, Communicator& all, const BenchSink& sink);

}  // namespace recmill::bench
