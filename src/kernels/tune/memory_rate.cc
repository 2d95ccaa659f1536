// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/memory_rate.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "device/buffer.h"

namespace recmill::kernels::tune {
namespace {

constexpr int64_t kWords = int64_t{32} << 20;  // 256 MiB: far more than caches hold
constexpr int64_t kPiece = int64_t{1} << 18;
constexpr int kPasses = 5;

/// Four sums, so that none waits for the one before.
uint64_t sum_of(const uint64_t* words, int64_t count) {
  uint64_t sums[4] = {};
  for (int64_t i = 0; i < count; i += 4)
    for (int64_t k = 0; k < 4; ++k) sums[k] += words[i + k];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace

Result<double> measure_memory_rate(const Clock& clock, ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(const Buffer buffer, Buffer::allocate_huge(kWords * sizeof(uint64_t)));
  const auto words = buffer.as<uint64_t>();
  std::ranges::fill(words, uint64_t{1});
  std::atomic<uint64_t> all{0};
  double best = 0.0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const int64_t start = clock.now_ns();
    pool.run_ranges(kWords, kPiece, [&](int64_t begin, int64_t end) {
      all += sum_of(words.data() + begin, end - begin);
    });
    const auto nanoseconds = static_cast<double>(std::max<int64_t>(1, clock.now_ns() - start));
    best = std::max(best, static_cast<double>(buffer.size()) * 1e9 / nanoseconds);
  }
  RECMILL_CHECK(all == static_cast<uint64_t>(kPasses * kWords));
  return best;
}

}  // namespace recmill::kernels::tune
