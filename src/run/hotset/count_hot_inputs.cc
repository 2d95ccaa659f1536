// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/count_hot_inputs.h"

#include <utility>

#include "hotset/decide_hot_set.h"
#include "run/checkpoint/row_digest.h"
#include "run/hotset/hot_folder.h"
#include "run/hotset/hot_problem.h"
#include "run/hotset/run_hot_set.h"
#include "run/placement/training_lookups.h"
#include "run/rank.h"

namespace recmill::train {
namespace {

Status visit_all_inputs(TrainingLookups& lookups, Progress::Style style, const std::string& what,
                        const std::function<void(const SparseBatch&)>& visit) {
  Progress progress(style, what, "rows", lookups.rows());
  return lookups.visit(0, lookups.rows(), progress, visit);
}

Result<std::unique_ptr<HotCensus>> decide_by_counts(const ResolvedRun& run, int64_t free,
                                                    TrainingLookups& lookups, ThreadPool& pool,
                                                    Files& files, Progress::Style style) {
  RECMILL_ASSIGN_OR_RETURN(auto counts, stats::AccessCounter::create(run.spec, row_digest(run)));
  RECMILL_RETURN_IF_ERROR(
      visit_all_inputs(lookups, style, "counting lookups",
                       [&](const SparseBatch& batch) { counts.add(batch, pool); }));
  hotset::HotProblem problem = hot_problem(run, free);
  HotSet set;
  if (run.options.hotset.plan.empty()) {
    RECMILL_ASSIGN_OR_RETURN(set, hotset::decide_hot_set(problem, counts));
  } else {
    RECMILL_ASSIGN_OR_RETURN(set, hot_set_of_file(run, files));
  }
  return std::make_unique<HotCensus>(std::move(problem), std::move(counts), std::move(set),
                                     run.spec);
}

}  // namespace

Result<std::unique_ptr<HotCensus>> decide_in_order_of_data(const ResolvedRun& run, int64_t free,
                                                           TrainingLookups& lookups,
                                                           ThreadPool& pool, Files& files,
                                                           Progress::Style style) {
  {
    Progress progress(style, "numbering ids", "rows", lookups.rows());
    RECMILL_RETURN_IF_ERROR(lookups.fill_dictionaries(progress));
  }
  return decide_by_counts(run, free, lookups, pool, files, style);
}

Result<std::unique_ptr<HotCensus>> count_hot_inputs(const ResolvedRun& run, int64_t free,
                                                    Files& files, Progress::Style style) {
  const bool puts_apart = run.options.hotset.order == BatchOrder::hot_cold;
  const ResolvedRun counted = puts_apart ? in_order_of_data(run) : run;
  const auto pool = make_pool(run.threads);
  TrainingLookups lookups(counted, *pool);
  RECMILL_RETURN_IF_ERROR(lookups.open(files));
  RECMILL_ASSIGN_OR_RETURN(
      auto census, puts_apart ? decide_in_order_of_data(counted, free, lookups, *pool, files, style)
                              : decide_by_counts(counted, free, lookups, *pool, files, style));
  // Ids are numbered anew where they come.
  TrainingLookups again(counted, *pool);
  if (!puts_apart) RECMILL_RETURN_IF_ERROR(again.open(files));
  RECMILL_RETURN_IF_ERROR(
      visit_all_inputs(puts_apart ? lookups : again, style, "counting hot inputs",
                       [&](const SparseBatch& batch) { census->inputs.add(batch, *pool); }));
  return census;
}

}  // namespace recmill::train
