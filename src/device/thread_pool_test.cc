// SPDX-License-Identifier: Apache-2.0
#include "device/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

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

}  // namespace recmill
