// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/thread_pool.h"
#include "lookahead/batch_rows.h"
#include "lookahead/cache_planner.h"
#include "lookahead_plan/slot_tables.h"
#include "step/data/step_planner.h"

namespace recmill::train {

/// Plans the cache of a rank that has no others beside it.
class CacheStepPlanner final : public StepPlanner {
 public:
  /// `model` and `pool` outlive it. `slot_bytes`: as CachePlanner.
  CacheStepPlanner(const ModelSpec& model, std::vector<int64_t> slot_bytes,
                   const lookahead::CacheOptions& options, ThreadPool& pool);

  /// Steps that have to be seen before one is planned, itself left out, at most.
  static int64_t ahead(const lookahead::CacheOptions& options);
  /// Bytes that it holds at most: of steps of so many lookups in each table, none of them twice in
  /// the same row.
  static int64_t most_bytes(const ModelSpec& model, const lookahead::CacheOptions& options,
                            std::span<const int64_t> lookups);

  int64_t ahead() const override { return ahead(options_); }
  Status see(const RankBatch& batch) override;
  void end() override { planner_.end(); }
  void go_on() override { planner_.go_on(); }
  Result<bool> plan(StepPlan& plan) override;

 private:
  const ModelSpec& model_;
  const lookahead::CacheOptions options_;
  ThreadPool& pool_;
  const SlotTables tables_;
  lookahead::BatchRows rows_;
  lookahead::CachePlanner planner_;
  std::shared_ptr<const CacheSize> size_;
};

}  // namespace recmill::train
