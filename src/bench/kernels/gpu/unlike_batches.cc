// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/gpu/unlike_batches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"

namespace recmill::bench {

void lengthen(SparseFeature& feature, int64_t factor, int64_t rows) {
  RECMILL_CHECK(feature.weights.empty());
  // Apart from each other by an odd number of rows, so that all of them are other rows.
  const int64_t step = std::max<int64_t>(1, rows / factor) | 1;
  std::vector<int64_t> longer;
  longer.reserve(feature.rows.size() * factor);
  for (int64_t row : feature.rows) {
    for (int64_t k = 0; k < factor; ++k) longer.push_back((row + k * step) % rows);
  }
  feature.rows = std::move(longer);
  for (int64_t& offset : feature.offsets) offset *= factor;
  feature.one_each = feature.one_each && factor == 1;
}

}  // namespace recmill::bench
