// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/thread_pool.h"

namespace recmill {

class GpuStream;

/// An ordered queue of work on one device. On the CPU device work runs at once, on the pool.
class Stream {
 public:
  explicit Stream(ThreadPool& pool, GpuStream* gpu = nullptr) : pool_(&pool), gpu_(gpu) {}
  ThreadPool& pool() const { return *pool_; }
  /// Where work is enqueued that reads and writes memory of a GPU; null: of the host, at once.
  GpuStream* gpu() const { return gpu_; }

 private:
  ThreadPool* pool_;
  GpuStream* gpu_;
};

}  // namespace recmill
