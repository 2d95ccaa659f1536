// SPDX-License-Identifier: Apache-2.0
// Work of low rank: what the threads of a pool do while the thread that trains has nothing for
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace recmill {

/// Open while a thread has nothing to compute: training that waits for data or for other ranks. Of
/// threads that share a pool each has a gate of its own.
/// A pool that has called run() within LowRank outlives the last open().
class WaitGate {
 public:
  /// While it is there, ThreadPool::run() of the thread that made it has low rank: the caller works
  /// as ever; a worker of the pool helps only while the gate is open and no other task is there to
  /// begin, one task at a time. So a task of others waits for a worker for one such task at most.
  class LowRank {
   public:
    explicit LowRank(WaitGate& gate);
    ~LowRank();
    LowRank(const LowRank&) = delete;
    LowRank& operator=(const LowRank&) = delete;

   private:
    WaitGate* const outer_;
  };

  void open();
  /// When it returns, workers begin no task of low rank any more; those begun go on to their end.
  void close();
  /// Tasks that workers have begun so far.
  int64_t helped() const;

 private:
  friend class ThreadPool;
  /// run() calls that wait for this gate, and what wakes the workers of their pool.
  struct Call {
    const void* call = nullptr;
    std::function<void()> wake;
  };
  mutable std::mutex mutex_;  // taken within that of a pool, never around it
  bool open_ = true;          // guarded by mutex_
  int64_t helped_ = 0;        // guarded by mutex_
  std::vector<Call> calls_;   // guarded by mutex_
};

}  // namespace recmill
