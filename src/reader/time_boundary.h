// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "device/pool.h"
#include "reader/row_index.h"

namespace recmill::reader {

/// The time from which on the last `eval_fraction` of the rows stand: of n rows, the time of row
/// n - max(1, floor(eval_fraction n)) in ascending order; exact, by counting passes over the time
/// column in bounded memory. Kept in `cache` for the same files, rule and fraction, as row indexes
/// are. `rule` keeps all rows and has a time column.
Result<int64_t> find_time_boundary(Files& files, const std::string& cache,
                                   const std::vector<std::string>& paths, const RowRule& rule,
                                   double eval_fraction, Pool& pool);

}  // namespace recmill::reader
