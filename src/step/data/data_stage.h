// SPDX-License-Identifier: Apache-2.0
// The stages from data to a prepared batch, ahead of training, on a thread of their own.
#pragma once

#include <memory>
#include <optional>
#include <thread>

#include "base/status.h"
#include "step/data/batch_source.h"
#include "step/data/batch_window.h"
#include "step/data/bounded_queue.h"
#include "step/rank_batch.h"
#include "step/trainer.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// Lets the trainer send what a step reads of the batch: sets `sent`. Null: nothing does.
Status send_ahead(Trainer* trainer, RankBatch& batch);

/// source ─ window ─ prepare ─ send: one thread drives all four, up to `queue` batches ahead of
/// next(). Requests are neither prepared nor sent. What fails is told behind the batches before it.
class DataStage {
 public:
  /// `trainer`: what sends batches ahead; null: nothing does. Store and trainer outlive the stage.
  DataStage(std::unique_ptr<BatchSource> source, BatchWindow window, store::EmbeddingStore& store,
            Trainer* trainer, size_t queue);
  ~DataStage();  // stops the thread; batches not yet handed out are dropped

  /// The next batch, or null after the last one.
  Result<std::unique_ptr<RankBatch>> next();
  /// Gives a batch's memory back for later ones.
  void recycle(std::unique_ptr<RankBatch> batch);

 private:
  using Item = Result<std::unique_ptr<RankBatch>>;
  Status produce();
  Result<bool> hand_on();
  std::unique_ptr<RankBatch> blank();

  const std::unique_ptr<BatchSource> source_;
  BatchWindow window_;
  store::EmbeddingStore& store_;
  Trainer* const trainer_;
  BoundedQueue<Item> ready_;
  BoundedQueue<std::unique_ptr<RankBatch>> used_;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace recmill::train
