// SPDX-License-Identifier: Apache-2.0
// A store that is as awkward as the seam allows: what passes with it works with every pipelined
// store to come.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "store/testing/forwarding_store.h"

namespace recmill::store::testing {

/// Decorates a store and finishes each update as late as it may, on another thread: when some
/// rank's lookup needs one of its rows, or of a later update's, or at settle(). It keeps copies of
/// what an update needs, and overwrites nothing of the caller's.
class LateStore final : public ForwardingStore {
 public:
  /// `communicator` is the one of `inner`: ranks agree there on what has to be finished.
  LateStore(ModelSpec model, std::unique_ptr<EmbeddingStore> inner, Communicator& communicator);
  ~LateStore() override;

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override;
  Status lookup(Prepared& prepared, Output output, Stream& stream) override;
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override;
  Status settle() override;
  /// CHECKs that settle() came first.
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) override;
  Status write_rows(const RowBlock& block) override;

  /// Updates that are not finished.
  size_t pending() const { return pending_.size(); }

 private:
  using Row = std::pair<int64_t, int64_t>;  // table, row
  struct Kept;
  struct LatePrepared;
  struct Pending;

  std::set<Row> rows_of(const SparseBatch& batch) const;
  Result<std::set<Row>> rows_of_all_ranks(const std::set<Row>& own);
  Result<int64_t> latest_of_all_ranks(int64_t own);
  Status finish(int64_t count);

  const ModelSpec model_;
  Communicator& communicator_;
  std::mutex mutex_;                              // evaluations may look up at the same time
  std::deque<std::unique_ptr<Pending>> pending_;  // guarded by mutex_; oldest first
};

}  // namespace recmill::store::testing
