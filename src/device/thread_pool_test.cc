// SPDX-License-Identifier: Apache-2.0
#include "device/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "device/wait_gate.h"

namespace recmill {

TEST(ThreadPool, runs_every_task_once_at_any_number_of_threads) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> counts(tasks);
      pool.run(tasks, [&](int64_t task) { counts[task].fetch_add(1); });
      for (const auto& count : counts) ASSERT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, serves_several_callers_and_nested_calls) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  constexpr int kCallers = 4;
  callers.reserve(kCallers);
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        pool.run(5, [&](int64_t) { pool.run(2, [&](int64_t inner) { sum.fetch_add(inner); }); });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), kCallers * 200 * 5);
}

TEST(ThreadPool, run_ranges_covers_exactly_the_items) {
  ThreadPool pool(2);
  std::vector<int> seen(103);
  pool.run_ranges(103, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++seen[i];
  });
  for (int count : seen) EXPECT_EQ(count, 1);
}

TEST(ThreadPool, tells_each_thread_to_start_before_its_first_task) {
  ThreadPool pool(2);
  static thread_local bool started = false;
  pool.set_thread_start([] { started = true; });
  std::atomic<int> unstarted{0};
  for (int round = 0; round < 50; ++round) {
    pool.run(8, [&](int64_t) { unstarted.fetch_add(started ? 0 : 1); });
  }
  EXPECT_EQ(unstarted.load(), 0);
}

/// A run() of low rank whose caller is held in its first task until finish(): workers alone begin
/// others, each of which they end when they are let go.
class HeldCall {
 public:
  HeldCall(ThreadPool& pool, WaitGate& gate, int64_t tasks) : counts_(tasks) {
    thread_ = std::thread([this, &pool, &gate] {
      const WaitGate::LowRank low(gate);
      const auto caller = std::this_thread::get_id();
      bool held = false;  // of the caller alone
      pool.run(std::ssize(counts_), [&](int64_t task) {
        counts_[task].fetch_add(1);
        if (std::this_thread::get_id() != caller) {
          let_go_.acquire();
        } else if (!std::exchange(held, true)) {
          begun_.set_value();
          finish_.get_future().wait();
        }
      });
    });
    begun_.get_future().wait();
  }
  void let_workers_go(int64_t tasks) { let_go_.release(tasks); }
  void finish() {
    finish_.set_value();
    thread_.join();
    for (const auto& count : counts_) EXPECT_EQ(count.load(), 1);
  }

 private:
  std::vector<std::atomic<int>> counts_;  // [tasks]
  std::counting_semaphore<> let_go_{0};
  std::promise<void> begun_, finish_;
  std::thread thread_;
};

void run_tasks_of_training(ThreadPool& pool) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> done{0};
    pool.run(4, [&](int64_t) { done.fetch_add(1); });
    EXPECT_EQ(done.load(), 4);
  }
}

TEST(ThreadPool, begins_no_task_of_low_rank_while_the_gate_is_closed) {
  for (int threads : {2, 4}) {
    ThreadPool pool(threads);
    WaitGate gate;
    gate.close();
    HeldCall call(pool, gate, 200);
    run_tasks_of_training(pool);
    EXPECT_EQ(gate.helped(), 0);
    for (int wait = 0; wait < 20; ++wait) {
      const int64_t before = gate.helped();
      gate.open();
      while (gate.helped() == before) std::this_thread::yield();
      gate.close();
      const int64_t after = gate.helped();
      call.let_workers_go(after - before);
      run_tasks_of_training(pool);
      EXPECT_EQ(gate.helped(), after) << threads << " threads, wait " << wait;
    }
    call.finish();
  }
}

TEST(ThreadPool, ends_a_call_of_low_rank_by_its_caller_alone_where_the_gate_stays_closed) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    WaitGate gate;
    gate.close();
    const WaitGate::LowRank low(gate);
    std::vector<int> counts(100);  // by this thread alone
    pool.run(100, [&](int64_t task) { ++counts[task]; });
    for (int count : counts) EXPECT_EQ(count, 1);
    EXPECT_EQ(gate.helped(), 0);
  }
}

TEST(ThreadPool, has_a_worker_end_one_task_of_low_rank_at_most_before_one_of_training) {
  ThreadPool pool(2);
  WaitGate gate;
  HeldCall call(pool, gate, 200);
  for (int64_t round = 1; round <= 50; ++round) {
    while (gate.helped() < round) std::this_thread::yield();  // the one worker is in such a task
    std::atomic<int> begun{0};
    std::atomic<int64_t> helped{0};
    // Two tasks that need two threads: the second to begin is the worker's.
    pool.run(2, [&](int64_t) {
      if (begun.fetch_add(1) == 0) {
        call.let_workers_go(1);
        while (begun.load() < 2) std::this_thread::yield();
      } else {
        helped = gate.helped();
      }
    });
    EXPECT_EQ(helped.load(), round);
  }
  gate.close();
  call.let_workers_go(1);
  call.finish();
}

}  // namespace recmill
