// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <cmath>
#include <numbers>

namespace recmill {

double Random::normal(uint64_t item, uint64_t block_index) const {
  const auto words = block(item, block_index);
  // (word + 0.5) / 2^32 lies inside (0, 1), so the logarithm is finite.
  const double u = (words[0] + 0.5) * (1.0 / 4294967296.0);
  const double v = (words[1] + 0.5) * (1.0 / 4294967296.0);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace recmill
