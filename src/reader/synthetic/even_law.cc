// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/even_law.h"

#include <numeric>

#include "base/random.h"
#include "base/status.h"

namespace recmill::reader {

Scatter::Scatter(int64_t count, uint64_t seed)
    : count_(static_cast<uint64_t>(count)),
      shift_(Random::mix(seed) % static_cast<uint64_t>(count)),
      inverse_(~uint64_t{0} / static_cast<uint64_t>(count) + 1) {
  RECMILL_CHECK(count >= 1 && count <= int64_t{1} << 31);
  const auto golden = static_cast<uint64_t>(0.6180339887498949 * static_cast<double>(count));
  // (count - 1) step + shift stays below 2^32.
  const uint64_t most = (uint64_t{1} << 32) / count_ - 1;
  step_ = std::max<uint64_t>(std::min(golden, most), 1);
  while (std::gcd(step_, count_) != 1) --step_;
}

}  // namespace recmill::reader
