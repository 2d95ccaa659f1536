// SPDX-License-Identifier: Apache-2.0
#include "run/placement/run_replanning.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json/json.h"
#include "run/placement/placement_problem.h"
#include "run/placement/run_placement.h"
#include "step/stage_listener.h"
#include "table/embedding_table.h"

namespace recmill::train {

bool replans(const ResolvedRun& run) {
  return run.placed != nullptr && run.ranks > 1 && run.options.placement.replan_every > 0;
}

void replanning_need(const ResolvedRun& run, int rank, MemoryLedger& ledger) {
  ledger.items.push_back({"counts of lookups", rank, Replanner::bytes(run.spec)});
  int64_t largest = 0;
  const auto shares = shares_of(run, rank);
  for (size_t t = 0; t < shares.size(); ++t)
    largest = std::max(largest, table::EmbeddingTable::bytes(run.spec.tables[t], shares[t]));
  ledger.items.push_back({"a table whose rows move", rank, largest, /*certain=*/false});
}

Result<std::unique_ptr<Replanner>> make_replanner(const ResolvedRun& run, Rank& rank,
                                                  Communicator& communicator, ThreadPool& pool,
                                                  Files& files, RunLog* log, int64_t iteration) {
  if (!replans(run)) return std::unique_ptr<Replanner>();
  const PlacementOptions& options = run.options.placement;
  ReplanSetting setting;
  setting.planner = options.planner;
  setting.options = planner_options(run);
  setting.every = options.replan_every;
  setting.gain = options.replan_gain;
  // What waits in the queue, what the data stage holds while that is full, and one more.
  setting.ahead = run.options.train.queue + 1;
  if (communicator.rank() == 0) {
    RECMILL_ASSIGN_OR_RETURN(setting.problem,
                             placement_problem(run, blank_counts(run), kAnyMemory, files));
    RECMILL_ASSIGN_OR_RETURN(const int64_t rows, rank.train_rows->rows());
    const int64_t batch = run.options.train.batch_size;
    setting.end = (run.samples_in_all(rows) + batch - 1) / batch;
    rank.trainer->stages().add(std::make_shared<GateInWaits>(setting.waits, communicator.ranks()));
  }
  const auto tell = [log](int64_t at, const Json& figures, const std::string& words) -> Status {
    if (!words.empty()) log->progress().say(fmt::format("iteration {}: {}", at, words));
    return log->placement(at, figures);
  };
  return Replanner::create(std::move(setting), *run.plan, run.spec,
                           static_cast<store::PlacedStore&>(*rank.store), communicator, pool, tell,
                           iteration);
}

}  // namespace recmill::train
