// SPDX-License-Identifier: Apache-2.0
// Access counts of different data together, also of those that were cut to files.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "schema/access_counts.h"

namespace recmill::stats {

/// Rows that are hot in one are hot, as far as a file of `bytes` has room (0:
/// default_file_bytes()). Samples, lookups and bags are exact. So are counts where no table was
/// cut; else undercount says how much one may lack, and those lookups are in range_lookups. The
/// order of `counts` changes nothing. A bad request where they are of several models, or there are
/// none.
Result<AccessCounts> merge_counts(std::span<const AccessCounts> counts, int64_t bytes = 0);

}  // namespace recmill::stats
