// SPDX-License-Identifier: Apache-2.0
#include "score/request_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

namespace recmill::train {
namespace {

/// Answers in no time, and sees who asks for what.
class Requests {
 public:
  /// The first `meet` requests are answered once they are all there.
  explicit Requests(int64_t meet = 0) : meet_(meet) {}

  AnswerRequest answer() {
    return [this](int64_t request, int64_t client) -> Result<RequestTimes> {
      std::unique_lock lock(mutex_);
      EXPECT_TRUE(std::ranges::find(busy_, client) == busy_.end()) << client;
      busy_.push_back(client);
      begun_.push_back(request);
      most_ = std::max(most_, std::ssize(busy_));
      arrived_.notify_all();
      if (request < meet_) arrived_.wait(lock, [&] { return std::ssize(begun_) >= meet_; });
      std::erase(busy_, client);
      if (std::ranges::find(failing_, request) != failing_.end())
        return Status::Failed("request " + std::to_string(request));
      return RequestTimes{.prepare = 1.0, .lookup = static_cast<double>(request)};
    };
  }
  void fail(std::vector<int64_t> requests) { failing_ = std::move(requests); }

  const std::vector<int64_t>& begun() const { return begun_; }
  int64_t most() const { return most_; }

 private:
  const int64_t meet_;
  std::vector<int64_t> failing_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<int64_t> busy_, begun_;  // clients; requests; guarded by mutex_
  int64_t most_ = 0;
};

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

TEST(RequestLoad, has_as_many_requests_in_flight_as_it_has_clients_and_answers_each_once) {
  for (const double rate : {0.0, 1e6}) {
    for (const int64_t concurrency : {1, 2, 4, 8}) {
      Requests requests(concurrency);
      const auto measured = answer_requests(
          100, {.warmup = 10, .rate = rate, .concurrency = concurrency}, requests.answer());
      ASSERT_TRUE(measured.ok()) << measured.status().message();
      auto begun = requests.begun();
      std::ranges::sort(begun);
      EXPECT_EQ(begun, numbers(100));
      EXPECT_EQ(requests.most(), concurrency);
      ASSERT_EQ(measured->times.size(), 90u);
      for (size_t i = 0; i < 90; ++i) EXPECT_EQ(measured->times[i].lookup, double(i + 10));
      EXPECT_GT(measured->seconds, 0.0);
    }
  }
}

TEST(RequestLoad, of_one_client_goes_in_order_on_the_calling_thread) {
  const auto caller = std::this_thread::get_id();
  std::vector<int64_t> begun;
  const auto answer = [&](int64_t request, int64_t client) -> Result<RequestTimes> {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(client, 0);
    begun.push_back(request);
    return RequestTimes();
  };
  int64_t before = 0;
  ASSERT_TRUE(answer_requests(20, {}, answer, [&] {
                ++before;
                return Status();
              }).ok());
  EXPECT_EQ(begun, numbers(20));
  EXPECT_EQ(before, 20);
}

TEST(RequestLoad, counts_the_wait_for_earlier_answers_in_an_open_loop_alone) {
  const auto slow = [](int64_t, int64_t) -> Result<RequestTimes> {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return RequestTimes();
  };
  const auto closed = answer_requests(5, {.warmup = 0}, slow);
  ASSERT_TRUE(closed.ok());
  for (const RequestTimes& times : closed->times) EXPECT_EQ(times.queue, 0.0);
  EXPECT_GE(closed->seconds, 10e-3);
  const auto open = answer_requests(5, {.warmup = 0, .rate = 1e9}, slow);  // all due at once
  ASSERT_TRUE(open.ok());
  for (size_t i = 0; i < 5; ++i)
    EXPECT_GE(open->times[i].queue, static_cast<double>(i) * 2e-3 - 1e-6) << i;
  const auto later = answer_requests(5, {.warmup = 0, .rate = 100.0, .concurrency = 3}, slow);
  ASSERT_TRUE(later.ok());
  EXPECT_GE(later->seconds, 42e-3);  // the fifth is due after 40
}

TEST(RequestLoad, ends_with_the_error_of_the_first_request_that_has_one) {
  for (const int64_t concurrency : {1, 4}) {
    Requests requests(concurrency);
    requests.fail({1, 2, 3});
    const auto measured = answer_requests(1000, {.concurrency = concurrency}, requests.answer());
    ASSERT_FALSE(measured.ok());
    EXPECT_EQ(measured.status().message(), "request 1");
    if (concurrency == 1) {
      EXPECT_EQ(requests.begun(), numbers(2));
    }
  }
  const auto none = answer_requests(7, {.warmup = 7}, Requests().answer());
  EXPECT_EQ(none.status().message(), "--warmup: is 7, which leaves none of 7 requests");
}

}  // namespace recmill::train
