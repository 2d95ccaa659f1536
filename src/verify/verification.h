// SPDX-License-Identifier: Apache-2.0
// Whether the engine gives the answers of the plain references, bit for bit: on the user's own
// configuration and data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "comm/world.h"
#include "run/job_setting.h"
#include "run/options/run_options.h"

namespace recmill::train {

struct VerificationRequest {
  JobIdentity identity;
  /// Numbers of ranks. Those that the run cannot have are left out; empty: 1, 2, 4 and 8, or what
  /// the world has.
  std::vector<int64_t> ranks;
  int64_t iterations = 50;  // at most so many, and one epoch
  std::function<void(const std::string& line)> say = [](const std::string&) {};
};

/// Trains the plain way (plain parser and preprocessing, plain store, one rank, one thread), then
/// by the engine at each number of ranks, and compares the loss of every iteration, every row with
/// its optimizer state, every dense parameter, the dictionaries and the scores of the evaluation
/// rows. A difference is a failure that names the first one: iteration; or table, row and element;
/// or layer. Returns what was compared. Collective over the processes of the world, of which the
/// one with rank 0 trains the plain way.
Result<Json> verify(const RunOptions& options, const VerificationRequest& request, World& world,
                    Files& files);

}  // namespace recmill::train
