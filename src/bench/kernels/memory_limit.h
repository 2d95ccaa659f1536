// SPDX-License-Identifier: Apache-2.0
// What the machine's memory allows a forward pass.
#pragma once

#include <span>

#include "base/status.h"
#include "bench/kernels/workload.h"

namespace recmill::bench {

/// Bytes that pooling a batch must move between memory and the cores.
struct PoolTraffic {
  int64_t read = 0;  // offsets, ids and weights; cache lines of the rows that are named, each once
  int64_t written = 0;     // outputs
  int64_t read_again = 0;  // what is beyond that where no cache holds a row until it is named again
  bool operator==(const PoolTraffic&) const = default;
};
PoolTraffic traffic_of(std::span<const kernels::PoolTask> tasks);

/// How much more than read and written it is where rows named again are read again; at least 1.
double without_reuse(const PoolBatches& batches);

/// Moves as many bytes as each batch must, one after the other and far apart from those of the
/// batch before: reads them, fetched ahead, and writes past the caches. Computes nothing. All
/// outlive the contender.
Result<Contender> memory_limit(const PoolBatches& batches, ThreadPool& pool);

}  // namespace recmill::bench
