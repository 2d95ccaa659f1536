// SPDX-License-Identifier: Apache-2.0
// Streams of steps that the cases of `bench oracle` are decided on.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "device/thread_pool.h"

namespace recmill::bench {

constexpr int64_t kOracleSamples = 16'384;

/// Of each step its distinct rows, ascending, as SlotTables numbers them.
using OracleStream = std::vector<std::vector<int64_t>>;

/// A row of a table, from 128 random bits. Any thread.
using RowLaw = std::function<int64_t(size_t table, uint64_t first, uint64_t second)>;

/// Tables of so many rows, of each of which every sample looks one up.
OracleStream make_stream(const std::vector<int64_t>& rows, const RowLaw& law, int64_t steps,
                         int64_t samples, ThreadPool& pool);

/// Kaggle's tables.
std::vector<int64_t> kaggle_rows();
/// Its rows by Zipf's law.
RowLaw kaggle_zipf(double exponent);
/// The first hundredth of each table has so large a share of the lookups, alike among them, and so
/// has the rest.
RowLaw top_hundredth(std::vector<int64_t> rows, double share);

}  // namespace recmill::bench
