// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/gpu/gpu_exchange.h"
#include "device/gpu/gpu.h"
#include "store/embedding_store.h"

namespace recmill::store {

/// A store whose rows a GPU reads and writes. Outputs and gradients may be the GPU's too: where
/// Stream::gpu() is stream(). lookup() and update() then enqueue their work and go on; what they
/// receive from other ranks' GPUs may still be on its way then: who waits for the stream does so by
/// wait().
class StoreOnGpu : public EmbeddingStore {
 public:
  virtual Gpu& gpu() = 0;
  /// What lookups and updates are enqueued on. Used by one thread at a time, which is that of
  /// lookup() and update().
  virtual GpuStream& stream() = 0;
  /// Between the ranks' GPUs; null: there is one rank.
  virtual GpuExchange* exchange() = 0;
  /// Returns when what is enqueued on a stream of the GPU has happened, what comes from other ranks
  /// among it. Fails as it did, and where another rank fails.
  Status wait(GpuStream& of) {
    GpuExchange* const between = exchange();
    return between == nullptr ? of.synchronize() : between->wait(of);
  }
};

}  // namespace recmill::store
