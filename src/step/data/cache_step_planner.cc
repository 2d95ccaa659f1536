// SPDX-License-Identifier: Apache-2.0
#include "step/data/cache_step_planner.h"

#include <algorithm>
#include <utility>

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

int64_t CacheStepPlanner::ahead() const {
  const int64_t lookahead = options_.lookahead.value_or(lookahead::kDefaultMostLookahead);
  return std::max(lookahead, std::min(options_.prefetch, lookahead) + 1);
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
