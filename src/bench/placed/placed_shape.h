// SPDX-License-Identifier: Apache-2.0
// What the cases of `bench placed` are built on: frozen shapes that fit a small machine, and the
// problem that planners are given of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/placed/small_shape.h"
#include "placement/problem.h"
#include "schema/cluster_spec.h"
#include "store/sharded/sharded_options.h"

namespace recmill::bench {

constexpr int64_t kRankSamples = 4096;    // of a rank in each batch
constexpr int64_t kCounted = 20'000'000;  // lookups that planners go by

/// On devices alike, whose memory is what OPER takes by default: 5 % more than rows take. One
/// figure for all links, which are alike: that of the median of `links`.
placement::Problem small_problem(const ModelSpec& model, const AccessCounts& counts, int devices,
                                 const std::vector<LinkSpec>& links, bool training, bool dedup);

}  // namespace recmill::bench
