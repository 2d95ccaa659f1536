// SPDX-License-Identifier: Apache-2.0
#include "hotset/rand_em_box.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

#include "base/random.h"
#include "hotset/student_t.h"

namespace recmill::hotset {
namespace {

using ChunkCounts = std::array<int64_t, kBoxChunks>;  // hot rows of each chunk

HotRowsEstimate estimate(const ChunkCounts& hot, int64_t rows) {
  constexpr auto n = static_cast<double>(kBoxChunks);
  const double chunks = static_cast<double>(rows) / static_cast<double>(kBoxChunkRows);
  int64_t seen = 0;
  for (int64_t y : hot) seen += y;
  const double mean = static_cast<double>(seen) / n;
  double squares = 0;
  for (int64_t y : hot)
    squares += (static_cast<double>(y) - mean) * (static_cast<double>(y) - mean);
  const double variance = squares / (n - 1);
  static const double t = two_sided_t(0.999, kBoxChunks - 1);
  const double half = t * std::sqrt((chunks - n) / chunks * variance / n);
  const int64_t cold = kBoxChunks * kBoxChunkRows - seen;
  return {mean * chunks, std::max(static_cast<double>(seen), (mean - half) * chunks),
          std::min(static_cast<double>(rows - cold), (mean + half) * chunks)};
}

std::vector<HotRowsEstimate> count_whole(int64_t rows, const std::function<int64_t(int64_t)>& count,
                                         std::span<const int64_t> cutoffs) {
  std::vector<HotRowsEstimate> exact(cutoffs.size());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t lookups = count(row);
    for (size_t c = 0; c < cutoffs.size(); ++c) exact[c].rows += lookups >= cutoffs[c];
  }
  for (HotRowsEstimate& e : exact) e.low = e.high = e.rows;
  return exact;
}

}  // namespace

std::vector<HotRowsEstimate> estimate_hot_rows(int64_t rows,
                                               const std::function<int64_t(int64_t)>& count,
                                               std::span<const int64_t> cutoffs, uint64_t seed,
                                               uint64_t table) {
  constexpr int64_t read = kBoxChunks * kBoxChunkRows;
  if (rows <= read) return count_whole(rows, count, cutoffs);
  // The first chunks of a random permutation: rows drawn evenly, those drawn before passed over.
  const Random random(seed, Purpose::sampling, table);
  std::unordered_set<int64_t> drawn;
  drawn.reserve(static_cast<size_t>(read));
  std::vector<ChunkCounts> hot(cutoffs.size(), ChunkCounts{});
  for (uint64_t draw = 0; std::ssize(drawn) < read; ++draw) {
    const auto row = static_cast<int64_t>(random.below(static_cast<uint64_t>(rows), draw));
    const size_t chunk = drawn.size() / static_cast<size_t>(kBoxChunkRows);
    if (!drawn.insert(row).second) continue;
    const int64_t lookups = count(row);
    for (size_t c = 0; c < cutoffs.size(); ++c) hot[c][chunk] += lookups >= cutoffs[c];
  }
  std::vector<HotRowsEstimate> estimates;
  for (const ChunkCounts& of_cutoff : hot) estimates.push_back(estimate(of_cutoff, rows));
  return estimates;
}

}  // namespace recmill::hotset
