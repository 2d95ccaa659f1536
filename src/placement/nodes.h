// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "schema/cluster_spec.h"

namespace recmill::placement {

/// Devices by node, ascending: two are on one node where a byte between them takes at most twice as
/// long as on the fastest link.
std::vector<std::vector<int>> nodes_of(const ClusterSpec& cluster);

}  // namespace recmill::placement
