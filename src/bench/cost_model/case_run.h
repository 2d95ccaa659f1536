// SPDX-License-Identifier: Apache-2.0
// A plan carried out by the placed store, and what that took.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "bench/cost_model/cost_model_cases.h"
#include "bench/start_together.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "placement_plan/placement_plan.h"

namespace recmill::bench {

struct RunOptions {
  int64_t repetitions = 3;      // timed
  bool count_on_wire = true;    // else bytes of messages, without headers
  int64_t most_rows = 250'000;  // of a table
};

/// In an iteration: the lookups of a batch and, in training, its update. Ids' preparation, which
/// runs ahead of training, is left out.
struct CaseTook {
  std::vector<double> sent;  // [ranks] bytes, mean over all iterations
  // Of the slowest rank, the least over repetitions: what else runs on the machine only adds.
  double communication = 0;  // seconds in calls of the communicator
  double seconds = 0;
  uint32_t looked_up = 0;  // digest of what each rank looked up before anything was timed
};

/// Collective; the same on all ranks.
Result<CaseTook> run_case(const CostModelCase& of, const PlacementPlan& plan, Communicator& all,
                          ThreadPool& pool, StartTogether& together, const RunOptions& options);

}  // namespace recmill::bench
