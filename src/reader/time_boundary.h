// SPDX-License-Identifier: Apache-2.0
// Where evaluation begins in a split by time of which only the share is given.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"

namespace recmill::reader {

/// Hands all times of a data set to `take`, some at once, in any order.
using TimePass = std::function<Status(const std::function<void(std::span<const int64_t>)>& take)>;

/// The time of row rows_before_evaluation() in ascending order: exact, by counting passes in
/// bounded memory. 0 where there are no rows.
Result<int64_t> time_boundary(double eval_fraction, const TimePass& pass);

/// The boundary that `search` finds, kept in `cache` for the same files, `rule` (text that differs
/// wherever other times would be found) and fraction, as row indexes are.
Result<int64_t> find_time_boundary(Files& files, const std::string& cache,
                                   const std::vector<std::string>& paths, const std::string& rule,
                                   double eval_fraction,
                                   const std::function<Result<int64_t>()>& search);

}  // namespace recmill::reader
