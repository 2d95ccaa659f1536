// SPDX-License-Identifier: Apache-2.0
// `bench cost_model`: what the cost model says of placement plans, held against runs of them.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

/// Started in several processes, a rank each. Links are measured; then the plans of
/// fitted_cases() run through the placed store, and what they took gives the cost model's constants
/// (`fit`): how much links are slower under several messages than alone, what a message and a byte
/// of lookups take, what the rest of an iteration takes a byte of the batch, and what networks add
/// to bytes. Then those of judged_cases() run, each beside its prediction. Samples that planners go
/// by, others that the cost model goes by, and those that run are drawn apart. Of each case: bytes
/// sent, of the rank that sends the most (by the interfaces' counters where each rank has a host to
/// itself, else of messages), communication of the slowest rank, and the whole iteration, of
/// embeddings alone; times are the least over repetitions. Over all cases, with the limits that
/// they are held to:
///   bytes          median and largest relative error, of a case at the rank it is the largest at
///   order          Spearman's correlation of predicted and measured times of an iteration
///   communication, iteration   median relative error
/// Plans of the same work must look up the same bits. Rank 0 reports. A bad request of a single
/// process.
Status run_cost_model_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
