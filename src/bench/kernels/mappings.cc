// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/mappings.h"

#include <algorithm>

namespace recmill::bench {
namespace {

using kernels::PoolMapping;

/// Of 512 samples each of 2 threads gets 16 blocks.
constexpr int64_t kSamplesOfBlock = 16;

}  // namespace

PoolMapping static_mapping(const kernels::FusedPool& fused, const PoolBatches& tuned,
                           Expected expected, int threads) {
  std::vector<double> costs(fused.kernels().size(), 0.0);
  for (int64_t batch = 0; batch < tuned.count(); ++batch) {
    const auto work = fused.work(tuned.tasks(batch));
    for (size_t f = 0; f < costs.size(); ++f) {
      const double cost = work[f].cost();
      costs[f] = expected == Expected::mean ? costs[f] + cost : std::max(costs[f], cost);
    }
  }
  return {PoolMapping::Kind::fixed, kernels::fixed_cuts(costs, threads)};
}

PoolMapping even_mapping(size_t features, int threads) {
  return {PoolMapping::Kind::fixed, kernels::fixed_cuts(std::vector(features, 1.0), threads)};
}

PoolMapping sample_block_mapping() {
  return {PoolMapping::Kind::sample_blocks, {}, kSamplesOfBlock};
}

}  // namespace recmill::bench
