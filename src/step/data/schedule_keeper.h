// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/json/json_fwd.h"
#include "base/status.h"
#include "hotset/hot_cold_order.h"
#include "step/data/schedule_losses.h"
#include "step/metrics/sample_window.h"
#include "step/rank_batch.h"

namespace recmill::train {

/// What a checkpoint has of the order of hot and cold batches.
struct ScheduleProgress {
  hotset::ScheduleState state;
  hotset::HotBatches begun;  // batches of the epoch that were trained before this schedule
  bool operator==(const ScheduleProgress&) const = default;
};
Json to_json(const ScheduleProgress& progress);
/// Of a checkpoint's property "schedule". An error names what is wrong in it.
Result<ScheduleProgress> schedule_progress_from(const Json& property);

/// A schedule that is over: a line of schedule.jsonl.
struct FinishedSchedule {
  int64_t schedule = 0, epoch = 0, iteration = 0;  // iterations trained
  double rate = 0, next_rate = 0;
  int64_t cold = 0, hot = 0;   // batches
  std::optional<double> loss;  // none: the rate does not go by it
};
Json to_json(const FinishedSchedule& schedule);

/// Whether a line of schedule.jsonl stays where a run goes on from `progress`.
bool is_before(const Json& line, const ScheduleProgress& progress);

/// On the side of training: follows the batches of a HotColdSource, judges schedules and tells the
/// source.
class ScheduleKeeper {
 public:
  ScheduleKeeper(const hotset::HotBatches& epoch, hotset::RatePolicy policy,
                 const hotset::OrderPlace& place, const hotset::HotBatches& begun,
                 std::shared_ptr<ScheduleLosses> losses)
      : adapts_(policy.adapts()),
        follower_(epoch, std::move(policy), place, begun),
        losses_(std::move(losses)) {}

  /// After a batch of training. What is returned is over, and has no loss.
  std::optional<FinishedSchedule> trained(const RankBatch& batch);
  /// After a batch that judges: its samples, of all ranks. At the last of them the schedule is
  /// over. Fails where the loss is no number.
  Result<std::optional<FinishedSchedule>> scored(const RankBatch& batch,
                                                 const metrics::ScoredSamples& samples);
  ScheduleProgress progress() const { return {follower_.state(), follower_.begun()}; }

 private:
  FinishedSchedule finished(const RankBatch& batch, double rate) const;

  const bool adapts_;
  hotset::ScheduleFollower follower_;
  const std::shared_ptr<ScheduleLosses> losses_;
  metrics::SampleWindow judging_{0};
  int64_t epoch_ = 0;  // of the last batch
};

}  // namespace recmill::train
