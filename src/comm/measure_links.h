// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "schema/cluster_spec.h"

namespace recmill {

/// Collective: what each rank takes to receive from each other one, a pair at a time while the
/// others are quiet: [ranks][ranks], to, from; of a rank from itself nothing. The same on all
/// ranks. Medians of several tries, of a short message and of a long one.
Result<std::vector<LinkSpec>> measure_links(Communicator& communicator,
                                            size_t long_bytes = size_t{1} << 21);

}  // namespace recmill
