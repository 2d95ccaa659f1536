// SPDX-License-Identifier: Apache-2.0
#include "score/latency.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/json/json.h"
#include "base/status.h"

namespace recmill::train {

std::vector<RequestTimes> slowest(std::span<const std::vector<RequestTimes>> by_rank) {
  std::vector<RequestTimes> times = by_rank[0];
  for (const std::vector<RequestTimes>& rank : by_rank.subspan(1)) {
    RECMILL_CHECK(rank.size() == times.size(), std::to_string(rank.size()));
    for (size_t i = 0; i < times.size(); ++i)
      if (rank[i].seconds() > times[i].seconds()) times[i] = rank[i];
  }
  return times;
}

double percentile(std::span<const double> ascending, int64_t per_mille) {
  RECMILL_CHECK(!ascending.empty() && per_mille >= 1 && per_mille <= 1000,
                std::to_string(per_mille));
  const auto count = static_cast<int64_t>(ascending.size());
  return ascending[(count * per_mille + 999) / 1000 - 1];
}

Json percentiles(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  Json json;
  for (const auto& [name, per_mille] :
       {std::pair{"p50", 500}, {"p90", 900}, {"p99", 990}, {"p99_9", 999}, {"largest", 1000}})
    json[name] = percentile(seconds, per_mille) * 1e3;
  json["mean"] = std::accumulate(seconds.begin(), seconds.end(), 0.0) /
                 static_cast<double>(seconds.size()) * 1e3;
  return json;
}

Json latency_report(std::span<const RequestTimes> requests) {
  const auto of = [&](const auto& seconds_of) {
    std::vector<double> seconds;
    seconds.reserve(requests.size());
    for (const RequestTimes& times : requests) seconds.push_back(seconds_of(times));
    return percentiles(std::move(seconds));
  };
  Json report;
  report["milliseconds"] = of([](const RequestTimes& times) { return times.seconds(); });
  Json& stages = report["stages"];
  stages["queue"] = of([](const RequestTimes& times) { return times.queue; });
  stages["prepare"] = of([](const RequestTimes& times) { return times.prepare; });
  stages["lookup"] = of([](const RequestTimes& times) { return times.lookup; });
  stages["forward"] = of([](const RequestTimes& times) { return times.forward; });
  return report;
}

}  // namespace recmill::train
