// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "run/resolved_run.h"
#include "step/rank_batch.h"

namespace recmill::train {

/// Writes the order in which inputs are trained: their numbers in the training subset, in the
/// data's own order from 0, one a line.
class TrainedOrder {
 public:
  /// On every rank of a run that notes where its inputs are from (ResolvedRun::notes_inputs); rank
  /// 0 writes `path`, which is there when it is closed. Where batches are mixed and shuffled, reads
  /// the data once. A bad request where rows are in no file and shuffled.
  static Result<std::unique_ptr<TrainedOrder>> open(const ResolvedRun& run, const std::string& path,
                                                    Communicator& communicator, ThreadPool& pool,
                                                    Files& files);

  /// After a batch of training. Collective.
  Status write(const RankBatch& batch);
  Status close();

 private:
  explicit TrainedOrder(Communicator& communicator) : communicator_(communicator) {}
  Result<int64_t> number_of(const RankBatch& batch, int64_t sample) const;

  Communicator& communicator_;
  bool is_apart_ = false;  // hot and cold inputs, whose files say their numbers
  std::vector<std::pair<int32_t, int64_t>> places_;  // mixed: by number, file and row in it
  std::unique_ptr<AtomicFile> file_;                 // of rank 0
};

}  // namespace recmill::train
