// SPDX-License-Identifier: Apache-2.0
// How the tuner's choices are judged by exchanging them (RecFlex, figure 12), and the part of the
// fused run that the judgement is about. Judging is pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/embedding_pool/fused_pool.h"

namespace recmill::bench {

/// Times of the same work by several candidates, one of them chosen: the median over rounds of
/// each, [candidates][rounds].
struct Exchange {
  double chosen = 0.0, best = 0.0, worst = 0.0;
  size_t best_place = 0, worst_place = 0;
  double regret() const { return chosen / best - 1.0; }
  /// Whether the candidates differ by so much that a bad choice would be seen.
  bool can_tell() const { return worst >= 1.3 * best; }
};
Exchange exchange_of(std::span<const std::vector<double>> seconds, size_t chosen);

/// Of several features' exchanges, those that can tell.
struct Judgement {
  int64_t told = 0;
  double median_regret = 0.0, largest_regret = 0.0;
  /// Every choice within 5 % of the best, half of them within 2 %.
  bool holds() const { return told > 0 && median_regret <= 0.02 && largest_regret <= 0.05; }
};
Judgement judge(std::span<const Exchange> exchanges);

/// Every combination of one of `choices` alternatives for each of `places`: the last one fastest.
std::vector<std::vector<size_t>> combinations(size_t places, size_t choices);

/// Runs a batch as FusedPool::run() does and adds the time that the tasks of each of `features`
/// (ascending) took to its place in `seconds`.
void run_timed(const kernels::FusedPool& fused, std::span<const kernels::PoolTask> tasks,
               const kernels::TaskMap& map, std::span<const int64_t> features, ThreadPool& pool,
               std::span<double> seconds);

}  // namespace recmill::bench
