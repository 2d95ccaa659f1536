// SPDX-License-Identifier: Apache-2.0
// Batches that are not like those of tuning, which a static thread mapping was made for (RecFlex,
// section VI-D).
#pragma once

#include <cstdint>

#include "batch/sparse_batch.h"

namespace recmill::bench {

/// A request that nobody splits, beside those of up to 512 samples.
constexpr int64_t kLargeBatch = 2560, kLargeBatches = 3;
/// What one feature's bags grow by.
constexpr int64_t kHeavyFactor = 50;

/// The bags of `feature` `factor` times as long: each lookup is followed by others of the same
/// table of `rows` rows. They have no weights.
void lengthen(SparseFeature& feature, int64_t factor, int64_t rows);

}  // namespace recmill::bench
