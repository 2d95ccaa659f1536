// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "bench/placement/frozen_shapes.h"
#include "schema/table_spec.h"

namespace recmill::bench {

constexpr int64_t kMostRows = 250'000;  // of a table
constexpr uint64_t kCountedSeed = 2, kTimedSeed = 1;

/// A frozen shape of `most_rows` rows a table at most, of `dim` where that is not 0.
FrozenShape small_shape(const std::string& name, int64_t dim = 0, int64_t most_rows = kMostRows);

/// Its tables and features, with row-wise Adagrad.
ModelSpec small_model(const FrozenShape& shape);

}  // namespace recmill::bench
