// SPDX-License-Identifier: Apache-2.0
// Ways to give a batch to threads that do not look at it, as settings of the fused pool.
#pragma once

#include <cstdint>

#include "bench/kernels/workload.h"

namespace recmill::bench {

/// What a static mapping takes a feature's cost for: the mean, or the most, over tuned batches.
enum class Expected { mean, most };

/// Each thread's fixed share of the features, by what they cost in `tuned`'s batches.
kernels::PoolMapping static_mapping(const kernels::FusedPool& fused, const PoolBatches& tuned,
                                    Expected expected, int threads);

/// Every thread as many features, whatever they cost: the even split of RECom.
kernels::PoolMapping even_mapping(size_t features, int threads);

/// A task is a block of samples of all features, as in HugeCTR.
kernels::PoolMapping sample_block_mapping();

}  // namespace recmill::bench
