// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "comm/communicator.h"
#include "comm/world.h"
#include "schema/cluster_spec.h"

namespace recmill::cli {

/// Collective: the ranks as devices. Links are measured a pair at a time, lookups on all ranks at
/// once, each with its share of its machine's cores; memory is a rank's share of what its machine
/// has free. The same on all ranks.
Result<ClusterSpec> measure_cluster(Communicator& communicator, const World& world);

}  // namespace recmill::cli
