// SPDX-License-Identifier: Apache-2.0
// What the machine's memory allows a forward pass, measured with the pass's own addresses.
#pragma once

#include "cli/bench/kernels/workload.h"

namespace recmill::cli {

/// Moves the bytes that pooling a batch must move, and computes nothing: reads the batch's offsets
/// and ids, a word of every cache line of each row that is named, in the order of lookups, and
/// writes every output line. In tasks as `fused` maps them. Each feature is moved in the way that
/// was fastest when its batch first came: how far rows are fetched ahead, whether a table that fits
/// the core's cache is read in order first, whether outputs pass the caches. All outlive the
/// contender.
Contender memory_limit(const kernels::FusedPool& fused, const PoolBatches& batches, Pool& pool);

}  // namespace recmill::cli
