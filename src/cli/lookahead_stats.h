// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/verb.h"

namespace recmill::cli {

struct LookaheadArguments {
  std::vector<int64_t> batches = {200}, prefetch = {4}, slots = {0};
  int64_t ranks = 1;
  bool trace = false;
  std::string html;  // file of the page; empty: none
};

/// `recmill stats --lookahead`: a line for each combination, or for each step of one.
Status print_lookahead(const ConfigArguments& config, const LookaheadArguments& arguments,
                       bool json, bool quiet);

}  // namespace recmill::cli
