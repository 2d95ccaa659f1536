// SPDX-License-Identifier: Apache-2.0
#include "step/data/batch_window.h"

#include <utility>

namespace recmill::train {

void BatchWindow::add(std::unique_ptr<RankBatch> batch) {
  batches_.push_back(std::move(batch));
}

std::unique_ptr<RankBatch> BatchWindow::take() {
  const auto enough = static_cast<size_t>(ended_ ? 1 : ahead_ + 1);
  if (batches_.size() < enough) return nullptr;
  std::unique_ptr<RankBatch> batch = std::move(batches_.front());
  batches_.pop_front();
  if (batch->purpose == store::Purpose::serve) return batch;
  batch->plan = std::make_shared<const StepPlan>(StepPlan{step_++, batch->before.iteration});
  return batch;
}

}  // namespace recmill::train
