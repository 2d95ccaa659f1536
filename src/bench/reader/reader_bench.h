// SPDX-License-Identifier: Apache-2.0
// `recmill bench reader`: from a file of Criteo rows to ready batches (ids hashed to rows, integers
// through the logarithm) against PyArrow, which only reads the same file, with the same threads.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_reader_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
