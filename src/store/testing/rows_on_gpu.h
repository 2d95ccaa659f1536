// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "batch/gpu_sparse_batch.h"
#include "device/gpu/testing/test_gpu.h"
#include "store/gpu/store_on_gpu.h"
#include "store/testing/forwarding_store.h"

namespace recmill::store::testing {

/// A store that is given batches whose rows are in its GPU's memory alone, as if they had been made
/// there.
class RowsOnGpu final : public ForwardingStore {
 public:
  explicit RowsOnGpu(std::unique_ptr<StoreOnGpu> store)
      : ForwardingStore(std::move(store)), copies_(*gpu().open_stream()) {}

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override {
    auto of = std::make_unique<Of>();
    of->sparse = *batch.sparse;
    of->sparse.on_gpu = std::make_shared<Sent>(gpu(), copies_, of->sparse);
    Batch there = batch;
    there.sparse = &of->sparse;
    RECMILL_ASSIGN_OR_RETURN(of->prepared, inner().prepare(there));
    return std::unique_ptr<Prepared>(std::move(of));
  }
  Status lookup(Prepared& prepared, Output output, Stream& stream) override {
    return inner().lookup(*static_cast<Of&>(prepared).prepared, output, stream);
  }
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override {
    std::vector<Update> there(updates.begin(), updates.end());
    for (Update& update : there)
      update.prepared = static_cast<Of*>(update.prepared)->prepared.get();
    return inner().update(there, step, stream);
  }

 private:
  class Sent final : public GpuSparseBatch {
   public:
    /// Takes rows and weights from the host.
    Sent(Gpu& gpu, GpuStream& stream, SparseBatch& batch)
        : GpuSparseBatch(gpu), arrays_(gpu, stream) {
      for (SparseFeature& feature : batch.features) {
        features.push_back({true, arrays_.put(feature.offsets), arrays_.put(feature.rows),
                            feature.weights.empty() ? nullptr : arrays_.put(feature.weights)});
        feature.on_host = false;
        feature.rows.clear();
        feature.weights.clear();
      }
      RECMILL_CHECK(made_by(stream).ok());
    }

   private:
    recmill::testing::TestArrays arrays_;
  };
  struct Of final : Prepared {
    SparseBatch sparse;
    std::unique_ptr<Prepared> prepared;
  };

  Gpu& gpu() const { return static_cast<StoreOnGpu&>(inner()).gpu(); }

  GpuStream copies_;
};

}  // namespace recmill::store::testing
