// SPDX-License-Identifier: Apache-2.0
// Problems made of a seed, for tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "placement/problem.h"

namespace recmill::placement::testing {

/// Counts of one table, of which rows with at least `hot_from` lookups are hot; ranges of `range`
/// rows.
TableCounts counts_of(const std::string& table, std::span<const int64_t> counts, int64_t hot_from,
                      int64_t range);

/// Tables of these rows and dimension, looked up by Zipf's law on scattered rows, one lookup a
/// table a sample, on `devices` equal devices with ample memory.
Problem zipf_problem(std::span<const int64_t> rows, int64_t dim, double exponent, int devices,
                     int64_t samples_counted, uint64_t seed);

}  // namespace recmill::placement::testing
