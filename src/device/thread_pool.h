// SPDX-License-Identifier: Apache-2.0
// The process's only compute threads. Torch, Arrow and oneDNN get their thread counts from it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace recmill {

class ThreadPool {
 public:
  /// `threads` >= 1 counts the caller of run(): the pool starts threads - 1 workers.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  /// Calls body(task) for each task in [0, tasks) and returns when all are done. The caller works
  /// too; tasks start in ascending order, each exactly once, on any thread. May be called from
  /// several threads at once (their tasks share the workers) and from inside a task (then it runs
  /// alone). `body` must not throw.
  void run(int64_t tasks, const std::function<void(int64_t)>& body);

  /// run() over [0, items) in pieces of `grain` items: body(begin, end). The pieces are a function
  /// of items and grain alone, never of the number of threads.
  void run_ranges(int64_t items, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

  /// Called once by every thread before its first task (Torch and OpenMP are told there to stay on
  /// one thread). Set before the first run().
  void set_thread_start(std::function<void()> start);

 private:
  struct State;
  std::unique_ptr<State> state_;
  const int threads_;
};

}  // namespace recmill
