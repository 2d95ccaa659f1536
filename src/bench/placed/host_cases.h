// SPDX-License-Identifier: Apache-2.0
// What it costs that rows of one host are stored at two ranks.
#pragma once

#include "bench/bench.h"
#include "comm/communicator.h"

namespace recmill::bench {

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
