// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "run/lookahead/count_lookahead.h"

namespace recmill::cli {

/// `recmill stats --lookahead --html`: of each case the rows that a cache fetches in an epoch,
/// beside other caches and none, and what ranks would send by each design. A function of its
/// arguments.
std::string lookahead_page(const std::string& name,
                           const std::vector<train::LookaheadCount>& counts);

}  // namespace recmill::cli
