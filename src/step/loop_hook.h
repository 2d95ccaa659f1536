// SPDX-License-Identifier: Apache-2.0
// What watches a run between its iterations, and may change it: where rows are placed, in which
// order batches come, what is kept near.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "batch/sparse_batch.h"

namespace recmill::train {

/// The loop calls the same hooks, in the same order, on every rank: after each iteration see(); on
/// rank 0 propose(); then adopt() on all, with what rank 0 proposed. What a hook changes when may
/// depend on the machine; what is computed does not.
class LoopHook {
 public:
  /// What is to be done, in the hook's own terms; 0: nothing.
  using Proposal = int64_t;

  virtual ~LoopHook() = default;

  /// This rank's part of the batch that `iteration` has trained.
  virtual Status see(const SparseBatch& batch, int64_t iteration) = 0;
  /// On rank 0, before `iteration` is trained. Waits for nothing.
  virtual Result<Proposal> propose(int64_t /*iteration*/) { return Proposal(0); }
  /// On every rank, before `iteration` is trained; may be collective.
  virtual Status adopt(Proposal /*proposal*/, int64_t /*iteration*/) { return {}; }
  /// Whether the batch of `iteration` moves rows. The loop lets a checkpoint that is being written
  /// end before, which would hold them in both places.
  virtual bool moves_rows(int64_t /*iteration*/) const { return false; }
};

}  // namespace recmill::train
