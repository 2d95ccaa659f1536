// SPDX-License-Identifier: Apache-2.0
#include "score/predict_requests.h"

#include <fmt/format.h>

#include <numeric>

#include "base/clock.h"
#include "base/json/json.h"
#include "comm/gather_values.h"
#include "score/latency.h"

namespace recmill::train {
namespace {

Result<RequestTimes> predict(RankBatch& request, Rank& rank, ForwardState& state) {
  RequestTimes times;
  Stopwatch watch;
  RECMILL_RETURN_IF_ERROR(prepare(*rank.store, request));
  times.prepare = watch.lap();
  RECMILL_RETURN_IF_ERROR(rank.trainer->predict(request, state));
  times.lookup = state.lookup_seconds;
  times.forward = watch.seconds() - times.lookup;
  request.prepared.reset();
  return times;
}

/// Of the requests that are counted, at this rank.
struct Totals {
  int64_t samples = 0;
  int64_t received = 0;  // bytes, by lookups
};

Result<Json> report(const MeasuredRequests& measured, const Totals& totals,
                    const RequestOptions& options, int64_t warmup, Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(const auto times, gather_lists(std::span(measured.times), communicator));
  RECMILL_ASSIGN_OR_RETURN(const auto received, gather_values(totals.received, communicator));
  double bytes = 0;
  for (const int64_t of_rank : received) bytes += static_cast<double>(of_rank);
  const auto count = static_cast<double>(measured.times.size());
  Json json;
  json["loop"] = options.rate > 0 ? "open" : "closed";
  if (options.rate > 0) json["rate"] = options.rate;
  json["concurrency"] = options.concurrency;
  json["requests"] = measured.times.size();
  json["warmup"] = warmup;
  json["seconds"] = measured.seconds;
  json["requests_per_second"] = count / measured.seconds;
  json["samples_per_second"] = static_cast<double>(totals.samples) / measured.seconds;
  json.update(latency_report(slowest(times)));
  json["received_bytes"] = bytes / count;
  return json;
}

}  // namespace

Status check_concurrency(const RequestOptions& options, int ranks, DeviceKind device) {
  if (options.concurrency == 1) return {};
  if (ranks > 1)
    return Status::BadRequest(fmt::format(
        "--concurrency: is {}, but train.ranks is {}: several ranks look up the rows of "
        "one request at a time, together; use 1 of either",
        options.concurrency, ranks));
  if (device != DeviceKind::cpu)
    return Status::BadRequest(
        fmt::format("--concurrency: is {}, but device is \"{}\": a GPU computes one request at a "
                    "time; use 1, or device = \"cpu\"",
                    options.concurrency, name_of(device)));
  return {};
}

Result<RequestResults> predict_requests(std::span<const std::unique_ptr<RankBatch>> requests,
                                        const RequestOptions& options, Rank& rank,
                                        Communicator& communicator) {
  const auto count = static_cast<int64_t>(requests.size());
  RequestResults results;
  results.logits.resize(requests.size());
  std::vector<int64_t> received(requests.size());
  std::vector<ForwardState> states(options.concurrency);
  RECMILL_RETURN_IF_ERROR(communicator.barrier());
  const auto answer = [&](int64_t i, int64_t client) -> Result<RequestTimes> {
    ForwardState& state = states[client];
    RECMILL_ASSIGN_OR_RETURN(const RequestTimes times, predict(*requests[i], rank, state));
    results.logits[i] = state.logits;
    received[i] = state.received;
    return times;
  };
  // All ranks begin a request together.
  std::function<Status()> before;
  if (communicator.ranks() > 1) before = [&] { return communicator.barrier(); };
  RECMILL_ASSIGN_OR_RETURN(const MeasuredRequests measured,
                           answer_requests(count, options, answer, before));
  const int64_t warmup = options.warmup_of(count);
  Totals totals;
  for (int64_t i = warmup; i < count; ++i) {
    totals.samples += requests[i]->cut.samples;
    totals.received += received[i];
  }
  RECMILL_ASSIGN_OR_RETURN(results.report, report(measured, totals, options, warmup, communicator));
  return results;
}

}  // namespace recmill::train
