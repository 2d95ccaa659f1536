// SPDX-License-Identifier: Apache-2.0
// `recmill bench train`: whole training iterations of a DLRM over tables of the sizes of Criteo
// Kaggle (preparing a batch, lookup, forward, backward, both optimizers; batches in memory) against
// the plain PyTorch script, and against what the machine's multiply-adds allow.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_train_bench(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
