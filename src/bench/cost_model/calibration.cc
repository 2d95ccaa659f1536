// SPDX-License-Identifier: Apache-2.0
#include "bench/cost_model/calibration.h"

#include <algorithm>
#include <utility>

#include "bench/cost_model/statistics.h"
#include "placement/cost_model.h"

namespace recmill::bench {
namespace {

using placement::Problem;
using placement::Rating;

/// On links and devices that take so much.
Rating rate_on(Problem problem, const PlacementPlan& plan, double link_factor,
               double message_seconds, double lookup_byte_seconds) {
  for (int to = 0; to < problem.devices(); ++to) {
    for (int from = 0; from < problem.devices(); ++from) {
      LinkSpec& link = problem.cluster.links[to * problem.devices() + from];
      link = to == from ? LinkSpec{0, lookup_byte_seconds}
                        : LinkSpec{message_seconds, link_factor * link.byte_seconds};
    }
  }
  return rate(problem, plan);
}

double communication_of(const Rating& rating) {
  double slowest = 0;
  for (const auto& device : rating.devices)
    slowest = std::max(slowest, device.fetch_seconds + device.reduce_seconds);
  return slowest;
}

double batch_bytes(const Problem& problem) {
  double bytes = 0;
  for (size_t t = 0; t < problem.tables.size(); ++t)
    bytes += static_cast<double>(problem.counts.tables[t].lookups) /
             static_cast<double>(problem.counts.samples) * static_cast<double>(problem.samples) *
             static_cast<double>(problem.tables[t].spec.dim) * sizeof(float);
  return bytes;
}

}  // namespace

RatedRun rate_run(const Problem& problem, const PlacementPlan& plan, CaseTook took) {
  RatedRun run;
  const Rating by_bytes = rate_on(problem, plan, 1, 0, 0);
  run.link_seconds = communication_of(by_bytes);
  run.messages = communication_of(rate_on(problem, plan, 0, 1, 0));
  for (const auto& device : by_bytes.devices) {
    run.sent.push_back(device.sent);
    run.looked_up = std::max(run.looked_up, device.looked_up);
  }
  run.batch_bytes = batch_bytes(problem);
  run.took = std::move(took);
  return run;
}

Calibration calibrate(std::span<const RatedRun> runs) {
  std::vector<std::vector<double>> sent_terms, link_terms, other_terms;
  std::vector<double> sent, communication, others;
  for (const RatedRun& run : runs) {
    for (size_t rank = 0; rank < run.sent.size(); ++rank) {
      sent_terms.push_back({run.sent[rank], 1});
      sent.push_back(run.took.sent[rank]);
    }
    link_terms.push_back({run.link_seconds, run.messages});
    communication.push_back(run.took.communication);
    other_terms.push_back({run.looked_up, run.batch_bytes});
    others.push_back(run.took.seconds - run.took.communication);
  }
  const auto wire = fit_costs(sent_terms, sent), links = fit_costs(link_terms, communication),
             rest = fit_costs(other_terms, others);
  return {wire[0], wire[1], links[0], links[1], rest[0], rest[1]};
}

Prediction predict(Problem problem, const PlacementPlan& plan, const Calibration& calibration) {
  const double batch = batch_bytes(problem);
  const Rating rating = rate_on(std::move(problem), plan, calibration.link_factor,
                                calibration.message_seconds, calibration.lookup_byte_seconds);
  Prediction prediction;
  for (const auto& device : rating.devices)
    prediction.sent.push_back(calibration.wire_factor * device.sent + calibration.wire_bytes);
  prediction.communication = communication_of(rating);
  prediction.seconds = rating.seconds + calibration.batch_byte_seconds * batch;
  return prediction;
}

}  // namespace recmill::bench
