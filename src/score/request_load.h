// SPDX-License-Identifier: Apache-2.0
// When requests begin, and on which thread: a closed or an open loop of several at once.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "score/latency.h"

namespace recmill::train {

struct RequestOptions {
  /// Requests that are answered first and not counted; below 0: a tenth of them.
  int64_t warmup = -1;
  /// Requests a second, evenly: request i is due i / rate seconds after the start, and what it
  /// waits because earlier ones are not answered yet is part of its time (open loop). 0: each is
  /// due when a client has its answer before (closed loop).
  double rate = 0.0;
  /// Requests in flight at once, at most: so many clients, each with one. At least 1.
  int64_t concurrency = 1;

  /// First requests that are not counted, of so many.
  int64_t warmup_of(int64_t requests) const { return warmup < 0 ? requests / 10 : warmup; }
};

/// What one rank saw of the requests that are counted.
struct MeasuredRequests {
  std::vector<RequestTimes> times;  // in order of the requests
  double seconds = 0.0;             // from when the first one was due until the last answer
};

/// Answers request `request` as `client`, of 0 ... concurrency - 1, and says where its time went,
/// without the queue. A client has one request at a time.
using AnswerRequest = std::function<Result<RequestTimes>(int64_t request, int64_t client)>;

/// Answers requests 0 ... count - 1, which begin in this order. One client answers on the calling
/// thread, more have a thread each. `before` is called in a closed loop before a request is due.
/// After an error no request begins; the error is that of the first request with one. A bad request
/// where none would be counted.
Result<MeasuredRequests> answer_requests(int64_t count, const RequestOptions& options,
                                         const AnswerRequest& answer,
                                         const std::function<Status()>& before = {});

}  // namespace recmill::train
