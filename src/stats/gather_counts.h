// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "comm/communicator.h"
#include "stats/access_counter.h"

namespace recmill::stats {

/// Adds what all ranks have counted to the counter of rank 0; those of the others stay as they are.
/// Collective. Beside the counters it takes some megabytes a rank.
Status gather_counts(AccessCounter& counter, Communicator& communicator);

}  // namespace recmill::stats
