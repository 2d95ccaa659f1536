// SPDX-License-Identifier: Apache-2.0
#include "step/data/hot_cold_source.h"

#include <fmt/format.h>

#include <algorithm>

namespace recmill::train {

using hotset::BatchKind;

hotset::OrderPlace place_of(const StreamPosition& position, const hotset::ScheduleState& state,
                            const HotColdRows& rows, int64_t batch_size) {
  const auto batches = [&](int64_t samples) { return (samples + batch_size - 1) / batch_size; };
  // An epoch that has ended is all trained, and the schedule is the one that ended it.
  const bool ended = position.row == 0 && position.iteration > 0;
  if (ended) return {state, rows.batches(batch_size)};
  return {state, {batches(position.row - position.hot_row), batches(position.hot_row)}};
}

HotColdSource::HotColdSource(const BatchSchedule& schedule, HotColdRows& rows, reader::Reader* eval,
                             preprocess::Preprocessor& preprocessor, const HotColdRules& rules,
                             const StreamPosition& start, const hotset::ScheduleState& state,
                             std::shared_ptr<ScheduleLosses> losses)
    : schedule_(schedule),
      rows_(rows),
      rules_(rules),
      samples_(schedule, preprocessor),
      judgement_(schedule, eval),
      evaluation_(schedule, eval),
      position_(start),
      order_(rows.batches(schedule.batch_size), rules.policy,
             place_of(start, state, rows, schedule.batch_size)),
      losses_(std::move(losses)),
      evaluation_due_(evaluation_is_due(schedule, start)) {
  go_on();
}

void HotColdSource::go_on() {
  step_ = order_.next();
  ends_epoch_ = order_.ends_epoch();
}

Result<bool> HotColdSource::next(RankBatch& batch) {
  batch.kind.reset();
  batch.judges = false;
  // Whether a schedule is over, and has to be judged, has to be known first.
  while (step_ == Step::unknown) RECMILL_RETURN_IF_ERROR(wait_for_loss());
  if (step_ == Step::judge) {
    if (!judgement_.has_rows())
      return Status::BadRequest(
          "hotset.rate: is 0, and nothing is evaluated here whose loss it could follow");
    RECMILL_RETURN_IF_ERROR(judgement_.read(position_, rules_.judged_rows, samples_, batch));
    batch.judges = true;
    batch.ends_training = batch.ends_training && !evaluation_due_;
    if (batch.last_of_pass) go_on();
    return true;
  }
  if (evaluation_due_ && evaluation_.has_rows()) {
    RECMILL_RETURN_IF_ERROR(evaluation_.read(position_, /*limit=*/0, samples_, batch));
    evaluation_due_ = !batch.last_of_pass;
    return true;
  }
  if (training_is_over(schedule_, position_)) return false;
  if (step_ == Step::missing)
    return Status::BadRequest(
        fmt::format("hotset.replay: {} ends with schedule {}, and training "
                    "goes on",
                    rules_.repeats_from, rules_.policy.repeated.rbegin()->first));
  RECMILL_RETURN_IF_ERROR(read_training(batch));
  evaluation_due_ = evaluation_is_due(schedule_, position_);
  return true;
}

Status HotColdSource::wait_for_loss() {
  const auto judged = losses_->take();
  if (!judged)
    return Status::Failed("training has stopped before the loss of a schedule was known");
  order_.judge(*judged);
  go_on();
  return {};
}

Status HotColdSource::read_training(RankBatch& batch) {
  const BatchKind kind = step_ == Step::hot ? BatchKind::hot : BatchKind::cold;
  const StreamPosition before = position_;
  const int64_t first = kind == BatchKind::hot ? before.hot_row : before.row - before.hot_row;
  samples_.cut(std::min(schedule_.batch_size, rows_.rows(kind) - first), batch);
  position_.iteration += 1;
  position_.row += batch.cut.samples;
  if (kind == BatchKind::hot) position_.hot_row += batch.cut.samples;
  if (ends_epoch_) {
    position_.epoch += 1;
    position_.row = position_.hot_row = 0;
  }
  batch.purpose = store::Purpose::train;
  batch.kind = kind;
  batch.before = before;
  batch.after = position_;
  batch.last_of_pass = ends_epoch_;
  batch.ends_training = training_is_over(schedule_, position_);
  RECMILL_RETURN_IF_ERROR(
      samples_.fill(rows_.reader(kind), before.epoch, first, before.row, batch));
  go_on();
  return {};
}

}  // namespace recmill::train
