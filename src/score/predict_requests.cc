// SPDX-License-Identifier: Apache-2.0
#include "score/predict_requests.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "comm/gather_values.h"
#include "score/latency.h"

namespace recmill::train {
namespace {

/// Before a request is due a thread no longer sleeps, which would end late.
constexpr double kAwakeSeconds = 1e-3;

void wait_until(double due, const Stopwatch& watch) {
  const double left = due - watch.seconds() - kAwakeSeconds;
  if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left));
  while (watch.seconds() < due) std::this_thread::yield();
}

Result<RequestTimes> predict(RankBatch& request, Rank& rank, std::vector<float>& logits) {
  Trainer& trainer = *rank.trainer;
  RequestTimes times;
  Stopwatch watch;
  RECMILL_RETURN_IF_ERROR(prepare(*rank.store, request));
  times.prepare = watch.lap();
  const double before = trainer.stages().figures(Stage::lookup).seconds;
  RECMILL_ASSIGN_OR_RETURN(const auto answered, trainer.predict(request));
  logits.assign(answered.begin(), answered.end());
  times.lookup = trainer.stages().figures(Stage::lookup).seconds - before;
  times.forward = watch.seconds() - times.lookup;
  request.prepared.reset();
  return times;
}

/// What one rank saw of the requests that are counted.
struct Measured {
  std::vector<RequestTimes> times;
  double seconds = 0.0;  // from the first's due time to the last's answer
  int64_t received = 0;  // bytes, by lookups
};

Result<Json> report(const Measured& measured, int64_t samples, const RequestOptions& options,
                    int64_t warmup, Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(const auto times, gather_lists(std::span(measured.times), communicator));
  RECMILL_ASSIGN_OR_RETURN(const auto received, gather_values(measured.received, communicator));
  double bytes = 0;
  for (const int64_t of_rank : received) bytes += static_cast<double>(of_rank);
  const auto count = static_cast<double>(measured.times.size());
  Json json;
  json["loop"] = options.rate > 0 ? "open" : "closed";
  if (options.rate > 0) json["rate"] = options.rate;
  json["requests"] = measured.times.size();
  json["warmup"] = warmup;
  json["seconds"] = measured.seconds;
  json["requests_per_second"] = count / measured.seconds;
  json["samples_per_second"] = static_cast<double>(samples) / measured.seconds;
  json.update(latency_report(slowest(times)));
  json["received_bytes"] = bytes / count;
  return json;
}

}  // namespace

Result<RequestResults> predict_requests(std::span<const std::unique_ptr<RankBatch>> requests,
                                        const RequestOptions& options, Rank& rank,
                                        Communicator& communicator) {
  const auto count = static_cast<int64_t>(requests.size());
  const int64_t warmup = options.warmup < 0 ? count / 10 : options.warmup;
  if (warmup >= count)
    return Status::BadRequest(
        fmt::format("--warmup: is {}, which leaves none of {} requests", warmup, count));
  RequestResults answers;
  answers.logits.resize(requests.size());
  Measured measured;
  int64_t samples = 0;
  const StageClock::Figures& lookups = rank.trainer->stages().figures(Stage::lookup);
  RECMILL_RETURN_IF_ERROR(communicator.barrier());
  const Stopwatch watch;
  const bool open = options.rate > 0;
  double first = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    if (!open) RECMILL_RETURN_IF_ERROR(communicator.barrier());
    const double due = open ? static_cast<double>(i) / options.rate : watch.seconds();
    if (open) wait_until(due, watch);
    const double queue = open ? watch.seconds() - due : 0.0;
    if (i == warmup) {
      first = due;
      measured.received -= static_cast<int64_t>(lookups.traffic.received);
    }
    RECMILL_ASSIGN_OR_RETURN(RequestTimes times, predict(*requests[i], rank, answers.logits[i]));
    if (i < warmup) continue;
    times.queue = queue;
    measured.times.push_back(times);
    samples += requests[i]->cut.samples;
  }
  measured.seconds = watch.seconds() - first;
  measured.received += static_cast<int64_t>(lookups.traffic.received);
  RECMILL_ASSIGN_OR_RETURN(answers.report,
                           report(measured, samples, options, warmup, communicator));
  return answers;
}

}  // namespace recmill::train
