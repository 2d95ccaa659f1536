// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/run_hot_set.h"

#include <fmt/format.h>

#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "base/paths.h"
#include "hotset/decide_hot_set.h"
#include "hotset_plan/hot_set_file.h"
#include "run/checkpoint/row_digest.h"
#include "run/handshake.h"
#include "run/hotset/hot_problem.h"
#include "run/placement/sampled_lookups.h"
#include "run/placement/training_lookups.h"
#include "run/rank.h"
#include "stats/access_counter.h"
#include "stats/gather_counts.h"

namespace recmill::train {
namespace {

constexpr const char* kHotSetKey = "hotset.plan";

/// Rank 0's, to all.
Status share_text(std::string& text, Communicator& communicator) {
  int64_t size = std::ssize(text);
  RECMILL_RETURN_IF_ERROR(communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0));
  text.resize(static_cast<size_t>(size));
  return communicator.broadcast(std::as_writable_bytes(std::span(text)), 0);
}

/// A rank's part of the inputs, or of those that count of a sample.
Status count_part(const ResolvedRun& run, Files& files, Progress::Style style, ThreadPool& pool,
                  const Communicator& communicator, stats::AccessCounter& counts) {
  const int64_t rank = communicator.rank(), ranks = communicator.ranks();
  if (rank > 0) style = Progress::Style::silent;
  const char* what = "counting lookups";
  if (run.options.hotset.sample < 1) {
    SampledLookups lookups(run, pool);
    RECMILL_RETURN_IF_ERROR(lookups.open(run.options.hotset.sample, "hotset.sample", files));
    Progress progress(style, what, "rows", lookups.sample().counting_rows() / ranks);
    return lookups.visit(
        SampledLookups::Part::counting, rank, ranks, progress,
        [&](const LookupSample::Block&, const SparseBatch& batch) { counts.add(batch, pool); });
  }
  TrainingLookups lookups(run, pool);
  RECMILL_RETURN_IF_ERROR(lookups.open(files));
  const int64_t end = (rank + 1) * lookups.rows() / ranks;
  Progress progress(style, what, "rows", end);
  return lookups.visit(rank * lookups.rows() / ranks, end, progress,
                       [&](const SparseBatch& batch) { counts.add(batch, pool); });
}

/// Empty on ranks other than 0.
Result<HotSetFiles> counted(const ResolvedRun& run, int64_t free, Files& files,
                            Progress::Style style, ThreadPool& pool, Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(auto counts, stats::AccessCounter::create(run.spec, row_digest(run)));
  RECMILL_RETURN_IF_ERROR(count_part(run, files, style, pool, communicator, counts));
  RECMILL_RETURN_IF_ERROR(stats::gather_counts(counts, communicator));
  if (communicator.rank() > 0) return HotSetFiles();
  RECMILL_ASSIGN_OR_RETURN(const HotSet set,
                           hotset::decide_hot_set(hot_problem(run, free), counts));
  return encode_hot_set(set);
}

}  // namespace

Result<HotSet> hot_set_of_file(const ResolvedRun& run, Files& files) {
  const std::string& path = run.options.hotset.plan;
  if (!files.exists(path))
    return Status::BadRequest(fmt::format("{}: there is no file {}", kHotSetKey, whole_path(path)));
  auto set = read_hot_set(files, path);
  if (!set.ok()) return set.status().at(kHotSetKey);
  RECMILL_RETURN_IF_ERROR(check_hot_set(*set, run.spec.tables).at(kHotSetKey));
  if (set->model == row_digest(run)) return set;
  return Status::BadRequest(fmt::format(
      "{}: {} is of other columns, or of ids that became rows in another way; 'recmill plan hotset "
      "--out' makes one for this run",
      kHotSetKey, path));
}

Result<std::shared_ptr<const HotSet>> find_hot_set(const ResolvedRun& run, int64_t free,
                                                   const JobIdentity& identity, World& world,
                                                   Files& files, Progress::Style style) {
  if (!run.options.hotset.plan.empty()) {
    RECMILL_ASSIGN_OR_RETURN(HotSet set, hot_set_of_file(run, files));
    return std::make_shared<const HotSet>(std::move(set));
  }
  const auto pool = make_pool(run.threads);
  std::mutex mutex;
  std::shared_ptr<const HotSet> found;
  RECMILL_RETURN_IF_ERROR(world.run(run.ranks, [&](Communicator& communicator) -> Status {
    RECMILL_RETURN_IF_ERROR(shake_hands(run, identity, communicator, files));
    RECMILL_ASSIGN_OR_RETURN(HotSetFiles contents,
                             counted(run, free, files, style, *pool, communicator));
    RECMILL_RETURN_IF_ERROR(share_text(contents.text, communicator));
    RECMILL_RETURN_IF_ERROR(share_text(contents.rows, communicator));
    RECMILL_ASSIGN_OR_RETURN(HotSet set, decode_hot_set(contents, "the hot set of rank 0"));
    const std::lock_guard lock(mutex);
    found = std::make_shared<const HotSet>(std::move(set));
    return {};
  }));
  return found;
}

}  // namespace recmill::train
