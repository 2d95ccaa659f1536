// SPDX-License-Identifier: Apache-2.0
#include "step/data/data_stage.h"

#include <utility>

#include "batch/gpu_sparse_batch.h"

namespace recmill::train {

Status send_ahead(Trainer* trainer, RankBatch& batch) {
  if (trainer == nullptr) return {};
  RECMILL_ASSIGN_OR_RETURN(batch.sent, trainer->send_ahead(batch.dense));
  return {};
}

DataStage::DataStage(std::unique_ptr<BatchSource> source, BatchWindow window,
                     store::EmbeddingStore& store, Trainer* trainer, size_t queue)
    : source_(std::move(source)),
      window_(std::move(window)),
      store_(store),
      trainer_(trainer),
      ready_(queue),
      // Of the batches there ever are: in the window, in hand, in the queue, and with the trainer.
      used_(static_cast<size_t>(window_.ahead()) + 1 + queue + 1),
      thread_([this] {
        if (const Status status = produce(); !status.ok()) ready_.push(status);
        ready_.close();
      }) {}

DataStage::~DataStage() {
  source_->stop();
  ready_.close();
  thread_.join();
}

Result<std::unique_ptr<RankBatch>> DataStage::next() {
  std::optional<Item> item = ready_.pop();
  if (!item) return std::unique_ptr<RankBatch>();
  return *std::move(item);
}

void DataStage::recycle(std::unique_ptr<RankBatch> batch) {
  // Many are in a deep window, of which few are of an evaluation: not each has its room.
  if (batch->purpose != store::Purpose::train && window_.ahead() > 0) return;
  batch->plan.reset();
  batch->prepared.reset();
  batch->sent.reset();
  batch->sparse.on_gpu.reset();
  used_.push(std::move(batch));
}

std::unique_ptr<RankBatch> DataStage::blank() {
  if (auto used = used_.try_pop()) return *std::move(used);
  return std::make_unique<RankBatch>();
}

Status DataStage::produce() {
  while (true) {
    if (source_->waits()) {
      window_.pause();
      RECMILL_ASSIGN_OR_RETURN(const bool wanted, hand_on());
      if (!wanted) return {};
      window_.go_on();
    }
    auto batch = blank();
    const Result<bool> there = source_->next(*batch);
    Status failure = there.status();
    if (failure.ok() && *there) failure = window_.add(std::move(batch));
    if (!failure.ok() && !window_.outlives_failure()) return failure;
    const bool ended = !failure.ok() || !*there;
    if (ended) window_.end();
    RECMILL_ASSIGN_OR_RETURN(const bool wanted, hand_on());
    if (!wanted || ended) return failure;
  }
}

/// What the window lets go; false: nobody wants more.
Result<bool> DataStage::hand_on() {
  while (true) {
    RECMILL_ASSIGN_OR_RETURN(auto batch, window_.take());
    if (batch == nullptr) return true;
    if (batch->purpose == store::Purpose::serve) {
      // Requests wait for long: not in a GPU's memory.
      RECMILL_RETURN_IF_ERROR(bring_to_host(batch->sparse));
    } else {
      RECMILL_RETURN_IF_ERROR(prepare(store_, *batch));
      RECMILL_RETURN_IF_ERROR(send_ahead(trainer_, *batch));
    }
    if (!ready_.push(std::move(batch))) return false;
  }
}

}  // namespace recmill::train
