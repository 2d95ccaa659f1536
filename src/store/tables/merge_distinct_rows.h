// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "batch/distinct_rows.h"

namespace recmill::store {

/// The distinct rows of one table over several batches of one iteration, each looked up by the same
/// `features` features: feature f of batch b becomes feature b * features + f. A row's sources
/// stand in the order (slice, batch, feature, sample, position): the fold over a slice goes on from
/// batch to batch. Positions are left out.
DistinctRows merge_distinct_rows(std::span<const DistinctRows* const> batches, int features);

}  // namespace recmill::store
