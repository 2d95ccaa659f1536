// SPDX-License-Identifier: Apache-2.0
#include "step/data/batch_window.h"

#include <utility>

namespace recmill::train {
namespace {

bool is_request(const RankBatch& batch) {
  return batch.purpose == store::Purpose::serve;
}

}  // namespace

Status BatchWindow::add(std::unique_ptr<RankBatch> batch) {
  if (planner_ != nullptr && !is_request(*batch)) RECMILL_RETURN_IF_ERROR(planner_->see(*batch));
  batches_.push_back(std::move(batch));
  return {};
}

void BatchWindow::end() {
  ended_ = true;
  if (planner_ != nullptr) planner_->end();
}

void BatchWindow::go_on() {
  RECMILL_CHECK(batches_.empty());
  ended_ = false;
  if (planner_ != nullptr) planner_->go_on();
}

Result<bool> BatchWindow::may_leave(StepPlan& plan) {
  if (planner_ != nullptr) return planner_->plan(plan);
  return std::ssize(batches_) > (ended_ ? 0 : ahead_);
}

Result<std::unique_ptr<RankBatch>> BatchWindow::take() {
  if (batches_.empty()) return std::unique_ptr<RankBatch>();
  RankBatch& oldest = *batches_.front();
  StepPlan plan{.step = step_,
                .iteration = oldest.before.iteration,
                .all_hot = oldest.kind == hotset::BatchKind::hot};
  if (planner_ == nullptr || !is_request(oldest)) {
    RECMILL_ASSIGN_OR_RETURN(const bool leaves, may_leave(plan));
    if (!leaves) return std::unique_ptr<RankBatch>();
  }
  std::unique_ptr<RankBatch> batch = std::move(batches_.front());
  batches_.pop_front();
  if (is_request(*batch)) return batch;
  batch->plan = std::make_shared<const StepPlan>(std::move(plan));
  ++step_;
  return batch;
}

}  // namespace recmill::train
