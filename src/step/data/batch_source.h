// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "step/rank_batch.h"

namespace recmill::train {

/// Where a rank's batches come from: its part of each global batch, in the order of training, with
/// the batches of every evaluation at their place in the stream. Global batch i is the same rows at
/// every number of ranks. A source owns the cursor: it starts at a StreamPosition, each batch
/// carries the one before and after it, and a checkpoint holds that of its last batch, however far
/// the source has read on since.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Fills `batch`, whose vectors are reused, with the next of the stream: all but its plan and
  /// what preparing and sending make of it. False: the stream has ended.
  virtual Result<bool> next(RankBatch& batch) = 0;
  /// Whether next() waits for what training says once it is through with the batches so far.
  virtual bool waits() const { return false; }
  /// By another thread: nobody asks for more; a next() that waits fails.
  virtual void stop() {}
};

}  // namespace recmill::train
