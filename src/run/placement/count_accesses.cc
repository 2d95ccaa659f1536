// SPDX-License-Identifier: Apache-2.0
#include "run/placement/count_accesses.h"

#include <algorithm>

#include "run/checkpoint/row_digest.h"
#include "run/handshake.h"
#include "run/placement/sampled_lookups.h"
#include "run/placement/training_lookups.h"
#include "run/rank.h"
#include "stats/access_counter.h"
#include "stats/gather_counts.h"

namespace recmill::train {
namespace {

/// A rank's part of the first rows of the order.
Status count_first(const ResolvedRun& run, int64_t wanted, Communicator& communicator,
                   const JobSetting& setting, ThreadPool& pool, stats::AccessCounter& counter) {
  TrainingLookups lookups(run, pool);
  RECMILL_RETURN_IF_ERROR(lookups.open(setting.files));
  const int64_t rows = wanted > 0 ? std::min(wanted, lookups.rows()) : lookups.rows();
  const int rank = communicator.rank(), ranks = communicator.ranks();
  const int64_t end = (rank + 1) * rows / ranks;
  Progress progress(rank == 0 ? setting.progress : Progress::Style::silent, "counting", "rows",
                    end);
  return lookups.visit(rank * rows / ranks, end, progress,
                       [&](const SparseBatch& batch) { counter.add(batch, pool); });
}

/// A rank's part of the blocks of a sample.
Status count_sample(const ResolvedRun& run, Communicator& communicator, const JobSetting& setting,
                    ThreadPool& pool, stats::AccessCounter& counter) {
  SampledLookups lookups(run, pool);
  RECMILL_RETURN_IF_ERROR(lookups.open(run.options.hotset.sample, "hotset.sample", setting.files));
  const int rank = communicator.rank(), ranks = communicator.ranks();
  Progress progress(rank == 0 ? setting.progress : Progress::Style::silent, "counting", "rows",
                    lookups.sample().drawn_rows / ranks);
  return lookups.visit(
      SampledLookups::Part::all, rank, ranks, progress,
      [&](const LookupSample::Block&, const SparseBatch& batch) { counter.add(batch, pool); });
}

}  // namespace

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
    const bool by_sample = request.rows == 0 && run.options.hotset.sample < 1;
    RECMILL_RETURN_IF_ERROR(
        by_sample ? count_sample(run, communicator, setting, *pool, counter)
                  : count_first(run, request.rows, communicator, setting, *pool, counter));
    RECMILL_RETURN_IF_ERROR(stats::gather_counts(counter, communicator));
    if (communicator.rank() == 0) counts = counter.finish(*pool, request.bytes);
    return {};
  }));
  return counts;
}

}  // namespace recmill::train
