// SPDX-License-Identifier: Apache-2.0
#include "device/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"

namespace recmill {
namespace {

// One call of run(). Lives on the caller's stack; a worker holds it only while `active` counts it.
struct Job {
  const std::function<void(int64_t)>* body;
  int64_t tasks;
  std::atomic<int64_t> next{0};
  std::atomic<int> active{0};  // workers inside

  void work() {
    for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;)
      (*body)(task);
  }
};

// A spin of some ten microseconds: parallel regions follow each other more closely than a wake-up
// takes.
constexpr int kSpins = 4000;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

thread_local bool t_inside_task = false;

uint64_t next_identity() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable wake;               // workers wait for jobs
  std::condition_variable left;               // callers wait for workers to leave their job
  std::deque<Job*> jobs;                      // guarded by mutex; those with tasks left
  std::atomic<uint64_t> posted{0};            // counts posted jobs, so that workers may spin on it
  bool stopping = false;                      // guarded by mutex
  const uint64_t identity = next_identity();  // never reused, unlike an address
  std::function<void()> thread_start;
  std::vector<std::thread> workers;

  void serve() {
    bool started = false;
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      while (!jobs.empty() &&
             jobs.front()->next.load(std::memory_order_relaxed) >= jobs.front()->tasks)
        jobs.pop_front();
      if (!jobs.empty()) {
        Job* job = jobs.front();
        job->active.fetch_add(1, std::memory_order_relaxed);
        if (jobs.size() > 1) {  // share the workers between callers
          jobs.pop_front();
          jobs.push_back(job);
        }
        lock.unlock();
        if (!started && thread_start) thread_start();
        started = true;
        t_inside_task = true;
        job->work();
        t_inside_task = false;
        lock.lock();
        if (job->active.fetch_sub(1, std::memory_order_release) == 1) left.notify_all();
        continue;
      }
      if (stopping) return;
      seen = posted.load(std::memory_order_relaxed);
      lock.unlock();
      for (int spin = 0; spin < kSpins && posted.load(std::memory_order_acquire) == seen; ++spin)
        pause();
      lock.lock();
      wake.wait(lock, [&] { return stopping || posted.load(std::memory_order_relaxed) != seen; });
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()), threads_(threads) {
  RECMILL_CHECK(threads >= 1, std::to_string(threads));
  for (int i = 1; i < threads; ++i) state_->workers.emplace_back([this] { state_->serve(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->posted.fetch_add(1);
  }
  state_->wake.notify_all();
  for (auto& worker : state_->workers) worker.join();
}

void ThreadPool::set_thread_start(std::function<void()> start) {
  std::lock_guard lock(state_->mutex);
  state_->thread_start = std::move(start);
}

void ThreadPool::run(int64_t tasks, const std::function<void(int64_t)>& body) {
  if (tasks <= 0) return;
  thread_local uint64_t started_for = 0;
  if (started_for != state_->identity && state_->thread_start) state_->thread_start();
  started_for = state_->identity;
  if (tasks == 1 || threads_ == 1 || t_inside_task) {
    for (int64_t task = 0; task < tasks; ++task) body(task);
    return;
  }
  Job job{&body, tasks};
  {
    std::lock_guard lock(state_->mutex);
    state_->jobs.push_back(&job);
    state_->posted.fetch_add(1, std::memory_order_release);
  }
  state_->wake.notify_all();
  t_inside_task = true;
  job.work();
  t_inside_task = false;
  // No worker can join any more once the job is off the list.
  std::unique_lock lock(state_->mutex);
  std::erase(state_->jobs, &job);
  if (job.active.load(std::memory_order_acquire) == 0) return;
  lock.unlock();
  for (int spin = 0; spin < kSpins && job.active.load(std::memory_order_acquire) != 0; ++spin)
    pause();
  lock.lock();
  state_->left.wait(lock, [&] { return job.active.load(std::memory_order_acquire) == 0; });
}

void ThreadPool::run_ranges(int64_t items, int64_t grain,
                            const std::function<void(int64_t, int64_t)>& body) {
  RECMILL_CHECK(grain > 0, std::to_string(grain));
  run((items + grain - 1) / grain,
      [&](int64_t task) { body(task * grain, std::min(items, (task + 1) * grain)); });
}

}  // namespace recmill
