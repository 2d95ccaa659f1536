// SPDX-License-Identifier: Apache-2.0
// Bags and values for tests, functions of a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "batch/sparse_batch.h"
#include "kernels/distinct_rows/distinct_rows.h"

namespace recmill::kernels {

struct BagShape {
  int64_t samples = 0;
  int64_t longest = 4;  // bags have 0 .. longest lookups; -1: exactly one each
  int64_t rows = 100;   // of the table
  bool weighted = false;
  int64_t duplicates = 2;  // one lookup in this many names row rows / 2; 0: none
};

inline SparseFeature random_bags(const BagShape& shape, uint64_t seed) {
  const Random random(seed, Purpose::test);
  SparseFeature feature;
  feature.offsets.push_back(0);
  feature.one_each = shape.longest < 0;
  for (int64_t i = 0; i < shape.samples; ++i) {
    const int64_t length =
        feature.one_each ? 1 : static_cast<int64_t>(random.below(shape.longest + 1, i, 1));
    for (int64_t k = 0; k < length; ++k) {
      const uint64_t item = feature.rows.size();
      const bool same = shape.duplicates > 0 && random.below(shape.duplicates, item, 2) == 0;
      feature.rows.push_back(same ? shape.rows / 2
                                  : static_cast<int64_t>(random.below(shape.rows, item, 3)));
      if (shape.weighted) feature.weights.push_back(random.uniform(item, 17) * 2.0f - 1.0f);
    }
    feature.offsets.push_back(static_cast<int64_t>(feature.rows.size()));
  }
  return feature;
}

/// Uniform in [-1, 1), a few of them -0.
inline std::vector<float> random_floats(int64_t count, uint64_t seed) {
  const Random random(seed, Purpose::test, 1);
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = random.bits(i);
    values[i] = word % 16 == 0 ? -0.0f : Random::unit(word) * 2.0f - 1.0f;
  }
  return values;
}

inline std::vector<int64_t> slice_begins(int64_t samples, int slices) {
  std::vector<int64_t> begins;
  for (int s = 0; s <= slices; ++s) begins.push_back(SliceCut{samples, slices}.begin(s));
  return begins;
}

}  // namespace recmill::kernels
