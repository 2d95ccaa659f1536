// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "placement/planners.h"

namespace recmill::placement {

/// Has owners pool (TablePlacement::send_pooled) those tables for which that takes the devices less
/// time altogether, predicted, than rows that are fetched: ids of all lookups and a row a bag and
/// owner, beside what dedup_fetch leaves of rows with their ids. A note says of how many. Tables of
/// which some feature is not pooled are left as they are.
void choose_pooling(const Problem& problem, Proposal& proposal);

}  // namespace recmill::placement
