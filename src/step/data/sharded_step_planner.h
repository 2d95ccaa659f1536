// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "lookahead/batch_rows.h"
#include "lookahead/cache_decider.h"
#include "lookahead/cache_sizer.h"
#include "step/data/step_planner.h"
#include "store/cached/ranks/home_ranks.h"

namespace recmill::train {

/// Plans the cache of one rank of several, with the planners of the others: each rank tells the
/// deciders of its rows which of them it uses, and is told by them what it does. Steps are seen and
/// planned in the same order on all ranks, on a thread of each.
///
/// A rank that sees no further step leaves, which ends the calls of the others: they are about
/// steps that nobody trains. Where a rank fails instead its communicator has to be aborted first.
class ShardedStepPlanner final : public StepPlanner {
 public:
  /// `model`, `pool` and `communicator` outlive it; nobody else uses that. `slot_bytes`, `options`:
  /// as CacheSizer; memory may differ between ranks.
  ShardedStepPlanner(const ModelSpec& model, std::vector<int64_t> slot_bytes,
                     const lookahead::CacheOptions& options, ThreadPool& pool,
                     Communicator& communicator);
  ~ShardedStepPlanner() override;

  int64_t ahead() const override;
  Status see(const RankBatch& batch) override;
  void end() override { ended_ = true; }
  void go_on() override;
  Result<bool> plan(StepPlan& plan) override;
  bool outlives_failure() const override { return false; }

 private:
  enum class Call : int64_t { uses, counts, parts, leave };
  using Message = std::vector<std::byte>;

  Result<Received> exchange(Call call, std::vector<Message> messages);
  Status see_uses(std::span<const int64_t> rows, int64_t batch_bytes);
  Status count(int64_t distinct, int64_t batch_bytes);
  Result<bool> choose();
  Result<RankStep> decide();

  const ModelSpec& model_;
  const std::vector<int64_t> slot_bytes_;
  lookahead::CacheOptions options_;  // memory: the least of all ranks, once a step was seen
  ThreadPool& pool_;
  Communicator& communicator_;
  const store::HomeRanks homes_;
  lookahead::BatchRows rows_;
  lookahead::CacheDecider decider_;
  std::optional<lookahead::CacheSizer> sizer_;  // from the first step on
  std::shared_ptr<const CacheSize> size_;       // once it was chosen
  bool ended_ = false, told_end_ = false, over_ = false;
};

}  // namespace recmill::train
