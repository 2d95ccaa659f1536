// SPDX-License-Identifier: Apache-2.0
// The benchmarks; benches.cc lists them by name.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

/// Started in several processes, of which the first 2 and 4 take turns: ordered_reduce of 16 MiB of
/// floats, bitwise the tree's sum, beside the message library's own all-reduce of the same vectors
/// and the time in which as many bytes, 2 n (W - 1) / W a rank, go to the next rank and come from
/// the one before at the same time: by TCP between hosts, by memcpy where all ranks are on one
/// host. Rank 0 reports milliseconds. A bad request of a single process.
Status run_comm_bench(const BenchOptions& options, const BenchSink& sink);

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

Status run_embedding_bench(const BenchOptions& options, const BenchSink& sink);

/// Started in two processes: one fetches rows of an embedding server in the other, 20,000 of 48
/// floats at a time, and as many bytes by a bare TCP connection, which is the limit. On one host
/// over TLS, too. Rank 0 reports milliseconds. A bad request of a single process.
Status run_server_bench(const BenchOptions& options, const BenchSink& sink);

/// Started in several processes, a rank each: tables and samples as `bench placed`. Seconds of
/// lookups and updates of a batch by each design of a cache that looks 60 batches ahead, beside no
/// cache (distinct rows, hashed over the ranks) and a plan like TorchRec's without de-duplication;
/// and the rows that a cache moves. With a GPU: gpu_cached_bench.h.
Status run_cached_bench(const BenchOptions& options, const BenchSink& sink);

/// The oracle of a cache, one thread: Criteo Kaggle's tables, Zipf's law at 1.09, batches of
/// 16,384, L = 200, P = 8, given the distinct rows of each step. Samples a second, beside
/// BagPipe's 3.27 million; then, of the steps after the first window, the share of distinct rows
/// that are fetched; slots, by the rows of a window; and bytes of the oracle by the same, with what
/// they are held to.
Status run_oracle_bench(const BenchOptions& options, const BenchSink& sink);

/// Started in several processes, a rank each: 26 tables of Criteo Kaggle's rows, 250,000 at most,
/// of dimension 64; 4,096 samples a rank, of Zipf's law at 1.2; row-wise Adagrad; no layers. Rows
/// are counted in other samples than are timed. With de-duplication and without: seconds of a
/// batch's lookups (forward and inference, which differ by OPER's plan) and of lookups and updates
/// (training), ids' preparation left out, with what was sent; OPER's plan beside those of other
/// planners, all through the same store in turns. Then OPER's figure 9 (a), inference: what a call
/// for all tables, rows that are balanced, 5 % of memory for duplicates, local rows read while
/// remote ones come, and de-duplication bring, each alone and one after the other, beside a plan by
/// tables with none of them. What is looked up must be bitwise the same whatever the plan, in
/// training after an update as well. Then placed_cases.h. Rank 0 reports. A bad request of a single
/// process.
Status run_placed_bench(const BenchOptions& options, const BenchSink& sink);

Status run_placement_bench(const BenchOptions& options, const BenchSink& sink);

Status run_reader_bench(const BenchOptions& options, const BenchSink& sink);

/// Started in several processes, a rank each: 26 tables of 1,000 rows of dimension 64, each row on
/// every rank, row-wise Adagrad; 4,096 samples a rank, each looking up one row of each table. The
/// curve over the share of rows that a batch of all ranks touches (OPER, section 5.3 and figure 9
/// b): in cases `same_*` every rank looks up all of these rows, as hot ones are, in cases `apart_*`
/// no row is looked up by two ranks. Seconds of an update, from the gradients to the rows, all ways
/// of CopyReduce in turns; preparation and lookups are left out. The limit is what the rank
/// that sends the most sends, over what the links, measured in the same run, carry. Rows must be
/// bitwise the same after every way. Rank 0 reports. A bad request of a single process.
Status run_reduce_bench(const BenchOptions& options, const BenchSink& sink);

/// Started in several processes, of which the first 1, 2 and 4 take turns: the ranks share
/// options.threads, at least one each. Batches are in memory; each iteration finds distinct rows,
/// looks up, goes forward and backward, and updates. Parameters must be bitwise those of one rank.
/// Several ranks sum dense gradients before they update rows, as training does on one host, and in
/// turns with that ("_overlap") meanwhile, as it does on several. For each: samples a second,
/// beside 1 rank with all threads; and for several, the share of time that waits for dense
/// gradients, and how much of it overlap hides. Rank 0 reports. A bad request of a single process.
Status run_scaling_bench(const BenchOptions& options, const BenchSink& sink);

Status run_train_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
