// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/status.h"
#include "store/embedding_store.h"

namespace recmill::store {

/// What prepare() has found out about batches, a `Work` each, whose memory goes from batch to
/// batch. Any thread. Outlives the batches.
template <typename Work>
class PreparedBatches {
 public:
  /// Memory to be used again, or new.
  std::unique_ptr<Work> take() {
    std::lock_guard lock(mutex_);
    if (resting_.empty()) return std::make_unique<Work>();
    auto work = std::move(resting_.back());
    resting_.pop_back();
    return work;
  }
  std::unique_ptr<Prepared> prepared(const Batch& batch, std::unique_ptr<Work> work) {
    return std::make_unique<Of>(*this, batch, std::move(work));
  }

  /// Of a batch that prepared() gave.
  static Work& work_of(Prepared& prepared) { return *static_cast<Of&>(prepared).work; }
  static const Batch& batch_of(const Prepared& prepared) {
    return static_cast<const Of&>(prepared).batch;
  }
  /// CHECKs that it is one of training.
  static const Batch& batch_of(const Update& update) {
    const Batch& batch = batch_of(*update.prepared);
    RECMILL_CHECK(batch.purpose == Purpose::train);
    return batch;
  }
  static const Work& work_of(const Update& update) {
    RECMILL_CHECK(batch_of(*update.prepared).purpose == Purpose::train);
    return work_of(*update.prepared);
  }

 private:
  struct Of final : Prepared {
    Of(PreparedBatches& all, const Batch& of, std::unique_ptr<Work> filled)
        : batch(of), work(std::move(filled)), batches(all) {}
    ~Of() override {
      std::lock_guard lock(batches.mutex_);
      batches.resting_.push_back(std::move(work));
    }
    const Batch batch;
    std::unique_ptr<Work> work;
    PreparedBatches& batches;
  };

  std::mutex mutex_;
  std::vector<std::unique_ptr<Work>> resting_;  // guarded by mutex_
};

}  // namespace recmill::store
