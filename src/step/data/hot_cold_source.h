// SPDX-License-Identifier: Apache-2.0
// Hot and cold inputs in batches of their own, in schedules (FAE, section III-C).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.h"
#include "hotset/hot_cold_order.h"
#include "preprocess/run/preprocessor.h"
#include "reader/reader.h"
#include "step/data/batch_schedule.h"
#include "step/data/batch_source.h"
#include "step/data/hot_cold_rows.h"
#include "step/data/rank_samples.h"
#include "step/data/schedule_losses.h"

namespace recmill::train {

/// What the order goes by, beside the rows.
struct HotColdRules {
  hotset::RatePolicy policy;
  int64_t judged_rows = 0;        // the first so many evaluation rows judge a schedule
  std::string repeats_from = {};  // the file of the schedules that are repeated
};

/// Where the order is at a position of the stream: `state` is of the batch before it.
hotset::OrderPlace place_of(const StreamPosition& position, const hotset::ScheduleState& state,
                            const HotColdRows& rows, int64_t batch_size);

/// Schedules one after the other. Dictionaries are full and admit no id. Where the rate adapts, an
/// evaluation is behind each schedule, which judges it, and the source waits for the loss once it
/// has handed out what follows whatever the loss is.
class HotColdSource final : public BatchSource {
 public:
  /// `eval`, and evaluations in the schedule: where the rate adapts they are there. Starts at
  /// `start`, where the schedule is `state`. All referenced objects outlive the source.
  HotColdSource(const BatchSchedule& schedule, HotColdRows& rows, reader::Reader* eval,
                preprocess::Preprocessor& preprocessor, const HotColdRules& rules,
                const StreamPosition& start, const hotset::ScheduleState& state,
                std::shared_ptr<ScheduleLosses> losses);

  Result<bool> next(RankBatch& batch) override;
  bool waits() const override { return step_ == Step::unknown; }
  void stop() override { losses_->close(); }

 private:
  using Step = hotset::HotColdOrder::Step;
  void go_on();
  Status read_training(RankBatch& batch);
  Status wait_for_loss();

  const BatchSchedule schedule_;
  HotColdRows& rows_;
  const HotColdRules rules_;
  RankSamples samples_;
  EvaluationPass judgement_, evaluation_;
  StreamPosition position_;
  hotset::HotColdOrder order_;
  std::shared_ptr<ScheduleLosses> losses_;
  Step step_ = Step::unknown;  // what comes
  bool ends_epoch_ = false;    // with it
  bool evaluation_due_ = false;
};

}  // namespace recmill::train
