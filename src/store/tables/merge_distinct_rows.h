// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "batch/distinct_rows.h"

namespace recmill::store {

/// The distinct rows of one table over several batches of one iteration, each looked up by the same
/// `features` features: feature f of batch b becomes feature b * features + f. A row's sources
/// are in the order (slice, batch, feature, sample, position): the fold over a slice goes on from
/// batch to batch. Positions are left out.
DistinctRows merge_distinct_rows(std::span<const DistinctRows* const> batches, int features);

/// By table, the distinct rows of `batches` [batches][tables], of at least one. Those of a single
/// batch are its own, those of several are in `merged` [tables]. `features_of` [tables]: the
/// table's features.
std::vector<const DistinctRows*> merge_tables(
    std::span<const std::span<const DistinctRows>> batches,
    std::span<const std::vector<size_t>> features_of, std::vector<DistinctRows>& merged);

}  // namespace recmill::store
