// SPDX-License-Identifier: Apache-2.0
#include "run/placement/count_accesses.h"

#include <algorithm>

#include "run/checkpoint/row_digest.h"
#include "run/handshake.h"
#include "run/placement/training_lookups.h"
#include "run/rank.h"
#include "stats/access_counter.h"
#include "stats/gather_counts.h"

namespace recmill::train {
Result<std::optional<AccessCounts>> count_accesses(const RunOptions& options,
                                                   const CountingRequest& request,
                                                   const JobSetting& setting) {
  RECMILL_ASSIGN_OR_RETURN(const ResolvedRun run,
                           resolve_run(options, setting.world, setting.files));
  const auto pool = make_pool(run.threads);
  std::optional<AccessCounts> counts;
  RECMILL_RETURN_IF_ERROR(setting.world.run(run.ranks, [&](Communicator& communicator) -> Status {
    RECMILL_RETURN_IF_ERROR(shake_hands(run, setting.identity, communicator, setting.files));
    RECMILL_ASSIGN_OR_RETURN(auto counter, stats::AccessCounter::create(run.spec, row_digest(run)));
    TrainingLookups lookups(run, *pool);
    RECMILL_RETURN_IF_ERROR(lookups.open(setting.files));
    const int64_t rows = request.rows > 0 ? std::min(request.rows, lookups.rows()) : lookups.rows();
    const int rank = communicator.rank(), ranks = communicator.ranks();
    const int64_t end = (rank + 1) * rows / ranks;
    Progress progress(rank == 0 ? setting.progress : Progress::Style::silent, "counting", "rows",
                      end);
    RECMILL_RETURN_IF_ERROR(
        lookups.visit(rank * rows / ranks, end, progress,
                      [&](const SparseBatch& batch) { counter.add(batch, *pool); }));
    RECMILL_RETURN_IF_ERROR(stats::gather_counts(counter, communicator));
    if (rank == 0) counts = counter.finish(*pool, request.bytes);
    return {};
  }));
  return counts;
}

}  // namespace recmill::train
