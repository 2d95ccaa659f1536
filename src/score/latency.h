// SPDX-License-Identifier: Apache-2.0
// What the times of answered requests come to. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"

namespace recmill::train {

/// Where the time of one request went, at one rank, in seconds.
struct RequestTimes {
  double queue = 0.0;    // from when it was due until the rank began
  double prepare = 0.0;  // ids to distinct rows and addresses
  double lookup = 0.0;   // rows fetched and pooled
  double forward = 0.0;  // rows to logits

  double seconds() const { return queue + prepare + lookup + forward; }
  bool operator==(const RequestTimes&) const = default;
};

/// A request is answered when its last rank is: of each request the times of the rank that took
/// longest, the first of such. by_rank: [ranks], of as many requests each.
std::vector<RequestTimes> slowest(std::span<const std::vector<RequestTimes>> by_rank);

/// The nearest rank: the smallest value that so many thousandths of all are not above. Of at least
/// one value; `ascending` may have equal ones. per_mille: 1 to 1000.
double percentile(std::span<const double> ascending, int64_t per_mille);

/// {"p50", "p90", "p99", "p99_9", "largest", "mean"}, in milliseconds.
Json percentiles(std::vector<double> seconds);

/// The percentiles of whole requests as "milliseconds", and of each stage as "stages": {name: ...}.
/// Of at least one request.
Json latency_report(std::span<const RequestTimes> requests);

}  // namespace recmill::train
