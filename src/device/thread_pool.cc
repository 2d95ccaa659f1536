// SPDX-License-Identifier: Apache-2.0
#include "device/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "device/wait_gate.h"

namespace recmill {
namespace {

// One call of run(). Lives on the caller's stack; a worker holds it only while `active` counts it.
struct Job {
  const std::function<void(int64_t)>* body;
  int64_t tasks;
  WaitGate* gate;  // of low rank; null: of none
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
thread_local WaitGate* t_gate = nullptr;

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
  std::deque<Job*> low;                       // guarded by mutex; those of low rank
  std::atomic<uint64_t> posted{0};            // counts posted jobs, so that workers may spin on it
  bool stopping = false;                      // guarded by mutex
  const uint64_t identity = next_identity();  // never reused, unlike an address
  std::function<void()> thread_start;
  std::vector<std::thread> workers;

  void post(Job* job) {
    if (job->gate != nullptr) {
      const std::lock_guard in_gate(job->gate->mutex_);
      job->gate->calls_.push_back({job, [this] { wake_workers(); }});
    }
    {
      std::lock_guard lock(mutex);
      (job->gate == nullptr ? jobs : low).push_back(job);
      posted.fetch_add(1, std::memory_order_release);
    }
    wake.notify_all();
  }

  void wake_workers() {
    {
      std::lock_guard lock(mutex);
      posted.fetch_add(1, std::memory_order_release);
    }
    wake.notify_all();
  }

  /// A job with tasks left, or null. Of several callers each gets workers.
  Job* next_job() {
    while (!jobs.empty() &&
           jobs.front()->next.load(std::memory_order_relaxed) >= jobs.front()->tasks)
      jobs.pop_front();
    if (jobs.empty()) return nullptr;
    Job* const job = jobs.front();
    if (jobs.size() > 1) {
      jobs.pop_front();
      jobs.push_back(job);
    }
    return job;
  }

  /// A job of low rank whose gate is open, and one task of it; or null.
  Job* next_low(int64_t& task) {
    for (Job* const job : low) {
      const std::lock_guard in_gate(job->gate->mutex_);
      if (!job->gate->open_) continue;
      task = job->next.fetch_add(1, std::memory_order_relaxed);
      if (task >= job->tasks) continue;
      ++job->gate->helped_;
      return job;
    }
    return nullptr;
  }

  /// Lets go of the mutex while `work` goes on.
  template <typename Work>
  void work_on(Job* job, bool& started, std::unique_lock<std::mutex>& lock, const Work& work) {
    job->active.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    if (!started && thread_start) thread_start();
    started = true;
    t_inside_task = true;
    work();
    t_inside_task = false;
    lock.lock();
    if (job->active.fetch_sub(1, std::memory_order_release) == 1) left.notify_all();
  }

  void serve() {
    bool started = false;
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      int64_t task = 0;
      if (Job* const job = next_job()) {
        work_on(job, started, lock, [job] { job->work(); });
        continue;
      }
      if (Job* const job = next_low(task)) {
        work_on(job, started, lock, [job, task] { (*job->body)(task); });
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
  WaitGate* const gate = t_gate;
  Job job{&body, tasks, gate};
  state_->post(&job);
  t_inside_task = true;
  job.work();
  t_inside_task = false;
  if (gate != nullptr) {
    const std::lock_guard in_gate(gate->mutex_);
    std::erase_if(gate->calls_, [&](const WaitGate::Call& of) { return of.call == &job; });
  }
  // No worker can join any more once the job is off the list.
  std::unique_lock lock(state_->mutex);
  std::erase(gate == nullptr ? state_->jobs : state_->low, &job);
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

WaitGate::LowRank::LowRank(WaitGate& gate) : outer_(std::exchange(t_gate, &gate)) {}

WaitGate::LowRank::~LowRank() {
  t_gate = outer_;
}

void WaitGate::open() {
  std::vector<Call> calls;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(open_, true)) return;
    calls = calls_;
  }
  for (const Call& of : calls) of.wake();
}

void WaitGate::close() {
  const std::lock_guard lock(mutex_);
  open_ = false;
}

int64_t WaitGate::helped() const {
  const std::lock_guard lock(mutex_);
  return helped_;
}

}  // namespace recmill
