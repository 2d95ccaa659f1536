// SPDX-License-Identifier: Apache-2.0
#include "step/data/cache_step_planner.h"

#include <algorithm>
#include <utility>

#include "base/saturating.h"
#include "store/batch_check.h"

namespace recmill::train {

CacheStepPlanner::CacheStepPlanner(const ModelSpec& model, std::vector<int64_t> slot_bytes,
                                   const lookahead::CacheOptions& options, ThreadPool& pool)
    : model_(model),
      options_(options),
      pool_(pool),
      tables_(model),
      rows_(model),
      planner_(tables_, std::move(slot_bytes), options) {}

int64_t CacheStepPlanner::ahead(const lookahead::CacheOptions& options) {
  const int64_t lookahead = options.lookahead.value_or(lookahead::kDefaultMostLookahead);
  return std::max(lookahead, std::min(options.prefetch, lookahead) + 1);
}

int64_t CacheStepPlanner::most_bytes(const ModelSpec& model, const lookahead::CacheOptions& options,
                                     std::span<const int64_t> lookups) {
  int64_t step_rows = 0, window_rows = 0;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const int64_t rows = model.tables[t].rows;
    step_rows += std::min(rows, lookups[t]);
    window_rows += std::min(rows, saturating_product({ahead(options) + 1, lookups[t]}));
  }
  const int64_t lookahead = options.lookahead.value_or(lookahead::kDefaultMostLookahead);
  return saturating_sum(
      {lookahead::BatchRows::most_bytes(model, lookups),
       lookahead::CachePlanner::most_bytes(lookahead, options.prefetch, step_rows, window_rows)});
}

Status CacheStepPlanner::see(const RankBatch& batch) {
  RECMILL_RETURN_IF_ERROR(store::check_rows(model_, batch.sparse, pool_));
  std::vector<int64_t> rows;
  rows_.find(batch.sparse, 0, batch.sparse.samples, pool_, rows);
  planner_.see(std::move(rows), batch.held_bytes());
  return {};
}

Result<bool> CacheStepPlanner::plan(StepPlan& plan) {
  RECMILL_ASSIGN_OR_RETURN(plan.lookahead, planner_.next());
  if (plan.lookahead == nullptr) return false;
  if (size_ == nullptr) size_ = std::make_shared<const CacheSize>(planner_.size());
  plan.cache = size_;
  return true;
}

}  // namespace recmill::train
