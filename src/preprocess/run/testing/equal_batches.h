// SPDX-License-Identifier: Apache-2.0
// Bitwise equality of what preprocessors make.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "batch/sparse_batch.h"

namespace recmill::preprocess {

inline void expect_equal(const DenseBatch& a, const DenseBatch& b) {
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.columns, b.columns);
  EXPECT_EQ(a.labels, b.labels);
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(a.values[i]), std::bit_cast<uint32_t>(b.values[i])) << i;
  }
}

inline void expect_equal(const SparseBatch& a, const SparseBatch& b) {
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.samples, b.samples);
  ASSERT_EQ(a.features.size(), b.features.size());
  for (size_t f = 0; f < a.features.size(); ++f) {
    SCOPED_TRACE("feature " + std::to_string(f));
    EXPECT_EQ(a.features[f].offsets, b.features[f].offsets);
    EXPECT_EQ(a.features[f].rows, b.features[f].rows);
    EXPECT_EQ(a.features[f].weights, b.features[f].weights);
    EXPECT_EQ(a.features[f].one_each, b.features[f].one_each);
  }
}

}  // namespace recmill::preprocess
