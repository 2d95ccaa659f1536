// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

/// Tables of four times the bytes that a GPU has for rows, embeddings alone: a cache of so many
/// bytes, beside gpu.rows = "fit" with as many and "host", and beside "device", which has four
/// times as many and is the limit. 26 tables of Criteo Kaggle's rows, 2 million at most, of
/// dimension 64; 16,384 samples of Zipf's law at 1.09; row-wise Adagrad; options.scale of both, on
/// the emulator little. Seconds of a batch's lookups and updates, planning and what goes over the
/// bus in the time. All ways look up the same bits.
Status run_gpu_cached_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
