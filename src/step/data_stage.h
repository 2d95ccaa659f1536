// SPDX-License-Identifier: Apache-2.0
// The stage that reads, preprocesses and prepares batches ahead of training, on a thread of its
// own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "base/random.h"
#include "base/status.h"
#include "preprocess/run/preprocessor.h"
#include "reader/reader.h"
#include "step/bounded_queue.h"
#include "step/rank_batch.h"
#include "step/trainer.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// Which batches there are, and where evaluation stands among them.
struct BatchSchedule {
  int64_t batch_size = 1;
  int64_t eval_batch_size = 1;
  int64_t epochs = 1;
  int64_t iterations = 0;      // 0: by epochs
  int64_t evaluate_every = 0;  // 0: after each epoch
  double negative_keep = 1.0;  // share of negatives that training keeps
  uint64_t seed = 0;           // of the down-sampling
  int slices = 1;
  int rank = 0;
  int ranks = 1;
  bool serves = false;  // evaluation batches are requests: who answers them prepares them
};

/// Whether training is over at `position`, given that epochs end where a position's row is 0.
bool training_is_over(const BatchSchedule& schedule, const StreamPosition& position);
/// Whether an evaluation follows the training batch that led to `position`.
bool evaluation_is_due(const BatchSchedule& schedule, const StreamPosition& position);

/// Whether training keeps the sample at `row` of the order of an epoch, of whose down-sampling
/// `random` is.
bool is_kept(const Random& random, double negative_keep, float label, int64_t row);

/// Whether each rank reads and preprocesses all samples of a batch, not only its own slices':
/// because dictionaries grow, or samples are left out.
bool reads_whole_batches(const BatchSchedule& schedule,
                         const preprocess::Preprocessor& preprocessor);

/// Hands out this rank's part of each global batch, in the order of training, with the batches of
/// every evaluation at their place in the stream. Global batch i is the same rows at every number
/// of ranks. A rank reads only its own samples, unless a dictionary or down-sampling needs to see
/// all.
class DataStage {
 public:
  /// `eval` may be null: no evaluations. `trainer`: what sends batches ahead; null: nothing does.
  /// Starts at `start`; the preprocessor's state is that of `start` already. All referenced objects
  /// outlive the stage.
  DataStage(const BatchSchedule& schedule, reader::Reader& train, reader::Reader* eval,
            preprocess::Preprocessor& preprocessor, store::EmbeddingStore& store, Trainer* trainer,
            const StreamPosition& start, size_t queue);
  ~DataStage();  // stops the thread; batches not yet handed out are dropped

  /// The next batch, or null after the last one.
  Result<std::unique_ptr<RankBatch>> next();
  /// Gives a batch's memory back for later ones.
  void recycle(std::unique_ptr<RankBatch> batch);

 private:
  using Item = Result<std::unique_ptr<RankBatch>>;
  Status produce();
  Status produce_training();
  Status produce_evaluation();
  Result<std::unique_ptr<RankBatch>> read_training();
  Status fill(reader::Reader& reader, int64_t epoch, int64_t first, int64_t samples,
              RankBatch& batch);
  void note_rows(int64_t begin, int64_t end, RankBatch& batch);
  Status finish(const ColumnBatch& columns, bool whole, RankBatch& batch);
  Status nothing_kept(int64_t rows) const;
  Status gather_kept(int64_t rows, int64_t& row);
  std::unique_ptr<RankBatch> blank();

  const BatchSchedule schedule_;
  reader::Reader& train_;
  reader::Reader* const eval_;
  preprocess::Preprocessor& preprocessor_;
  store::EmbeddingStore& store_;
  Trainer* const trainer_;
  StreamPosition position_;
  bool stopped_ = false;
  ColumnBatch columns_;     // as read
  ColumnBatch kept_;        // after down-sampling, the batch under way
  DenseBatch whole_dense_;  // when this rank must see the whole batch
  SparseBatch whole_sparse_;
  BoundedQueue<Item> ready_;
  BoundedQueue<std::unique_ptr<RankBatch>> used_;
  std::thread thread_;  // last: starts when all else stands
};

}  // namespace recmill::train
