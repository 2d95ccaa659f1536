// SPDX-License-Identifier: Apache-2.0
#include "score/request_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace recmill::train {
namespace {

/// Before a request is due a thread no longer sleeps, which would end late.
constexpr double kAwakeSeconds = 1e-3;

void wait_until(double due, const Stopwatch& watch) {
  const double left = due - watch.seconds() - kAwakeSeconds;
  if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left));
  while (watch.seconds() < due) std::this_thread::yield();
}

/// One request, in seconds since the start.
struct Answered {
  double due = 0.0, end = 0.0;
  RequestTimes times;
};

class Load {
 public:
  Load(int64_t count, const RequestOptions& options, const AnswerRequest& answer,
       const std::function<Status()>& before)
      : rate_(options.rate), answer_(answer), before_(before), answered_(count), failed_(count) {}

  /// Until no request is left.
  void work(int64_t client) {
    while (true) {
      const int64_t request = begin();
      if (request < 0) return;
      Answered& of = answered_[request];
      const double begun = watch_.seconds();
      auto times = answer_(request, client);
      of.end = watch_.seconds();
      if (!times.ok()) return fail(request, times.status());
      of.times = *times;
      of.times.queue = rate_ > 0 ? begun - of.due : 0.0;
    }
  }

  Result<std::vector<Answered>> take() {
    for (Status& status : failed_) RECMILL_RETURN_IF_ERROR(std::move(status));
    return std::move(answered_);
  }

 private:
  /// The next request, once it is due; -1: there is none. One client waits for the next one, the
  /// others for that client.
  int64_t begin() {
    const std::lock_guard lock(mutex_);
    if (stopped_ || next_ == std::ssize(answered_)) return -1;
    const int64_t request = next_++;
    if (rate_ > 0) {
      answered_[request].due = static_cast<double>(request) / rate_;
      wait_until(answered_[request].due, watch_);
    } else {
      if (const Status status = before_ ? before_() : Status(); !status.ok()) fail(request, status);
      answered_[request].due = watch_.seconds();
    }
    return stopped_ ? -1 : request;
  }

  void fail(int64_t request, const Status& status) {
    failed_[request] = status;
    stopped_ = true;
  }

  const double rate_;
  const AnswerRequest& answer_;
  const std::function<Status()>& before_;
  const Stopwatch watch_;
  std::mutex mutex_;
  int64_t next_ = 0;  // guarded by mutex_
  std::atomic<bool> stopped_ = false;
  std::vector<Answered> answered_;  // of each its client's
  std::vector<Status> failed_;      // alike
};

}  // namespace

Result<MeasuredRequests> answer_requests(int64_t count, const RequestOptions& options,
                                         const AnswerRequest& answer,
                                         const std::function<Status()>& before) {
  const int64_t warmup = options.warmup_of(count);
  if (warmup >= count)
    return Status::BadRequest(
        fmt::format("--warmup: is {}, which leaves none of {} requests", warmup, count));
  Load load(count, options, answer, before);
  if (options.concurrency == 1) {
    load.work(0);
  } else {
    std::vector<std::thread> clients;
    for (int64_t client = 0; client < std::min(options.concurrency, count); ++client)
      clients.emplace_back([&load, client] { load.work(client); });
    for (std::thread& client : clients) client.join();
  }
  RECMILL_ASSIGN_OR_RETURN(const auto answered, load.take());
  MeasuredRequests measured;
  double end = 0.0;
  for (int64_t i = warmup; i < count; ++i) {
    measured.times.push_back(answered[i].times);
    end = std::max(end, answered[i].end);
  }
  measured.seconds = end - answered[warmup].due;
  return measured;
}

}  // namespace recmill::train
