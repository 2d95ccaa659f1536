// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/count_hot_inputs.h"

#include <utility>

#include "hotset/decide_hot_set.h"
#include "run/checkpoint/row_digest.h"
#include "run/hotset/hot_problem.h"
#include "run/placement/training_lookups.h"
#include "run/rank.h"

namespace recmill::train {
namespace {

Status visit_all(const ResolvedRun& run, ThreadPool& pool, Files& files, Progress::Style style,
                 const std::string& what, const std::function<void(const SparseBatch&)>& visit) {
  TrainingLookups lookups(run, pool);
  RECMILL_RETURN_IF_ERROR(lookups.open(files));
  Progress progress(style, what, "rows", lookups.rows());
  return lookups.visit(0, lookups.rows(), progress, visit);
}

}  // namespace

Result<std::unique_ptr<HotCensus>> count_hot_inputs(const ResolvedRun& run, int64_t free,
                                                    Files& files, Progress::Style style) {
  const auto pool = make_pool(run.threads);
  RECMILL_ASSIGN_OR_RETURN(auto counts, stats::AccessCounter::create(run.spec, row_digest(run)));
  RECMILL_RETURN_IF_ERROR(visit_all(run, *pool, files, style, "counting lookups",
                                    [&](const SparseBatch& batch) { counts.add(batch, *pool); }));
  hotset::HotProblem problem = hot_problem(run, free);
  RECMILL_ASSIGN_OR_RETURN(HotSet set, hotset::decide_hot_set(problem, counts));
  auto census =
      std::make_unique<HotCensus>(std::move(problem), std::move(counts), std::move(set), run.spec);
  RECMILL_RETURN_IF_ERROR(
      visit_all(run, *pool, files, style, "counting hot inputs",
                [&](const SparseBatch& batch) { census->inputs.add(batch, *pool); }));
  return census;
}

}  // namespace recmill::train
