// SPDX-License-Identifier: Apache-2.0
// `bench reduce`: the ways in which gradients of rows with copies become the same sums everywhere.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

/// Started in several processes, a rank each: 26 tables of 1,000 rows of dimension 64, each row on
/// every rank, row-wise Adagrad; 4,096 samples a rank, each looking up one row of each table. The
/// curve over the share of rows that a batch of all ranks touches (OPER, section 5.3 and figure 9
/// b): in cases `same_*` every rank looks up all of these rows, as hot ones are, in cases `apart_*`
/// no row is looked up by two ranks. Seconds of an update, from the gradients to the rows, all ways
/// of CopyReduce in turns; preparation and lookups are left out. The limit is what the rank
/// that sends the most sends, over what the links, measured in the same run, carry. Rows must be
/// bitwise the same after every way. Rank 0 reports. A bad request of a single process.
Status run_reduce_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
