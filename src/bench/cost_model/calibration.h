// SPDX-License-Identifier: Apache-2.0
// The constants of a cluster that the cost model's prices are in, fitted on plans that ran.
#pragma once

#include <span>
#include <vector>

#include "bench/cost_model/case_run.h"
#include "placement/problem.h"
#include "placement_plan/placement_plan.h"

namespace recmill::bench {

/// What a plan moves and looks up in an iteration by the cost model, and what it took.
struct RatedRun {
  std::vector<double> sent;  // [ranks] bytes
  // Of the slowest device:
  double link_seconds = 0;  // of bytes, links being as measured
  double messages = 0;
  double looked_up = 0;    // bytes, for all devices
  double batch_bytes = 0;  // that a rank's samples look up, wherever rows are stored
  CaseTook took;
};

/// `problem`: with links as measured.
RatedRun rate_run(const placement::Problem& problem, const PlacementPlan& plan, CaseTook took);

struct Calibration {
  double wire_factor = 1, wire_bytes = 0;       // bytes sent: factor * predicted + bytes of a rank
  double link_factor = 1, message_seconds = 0;  // of links: factor * measured seconds a byte
  double lookup_byte_seconds = 0;               // of rows on a device
  double batch_byte_seconds = 0;                // of what does not depend on the plan
};

/// By least squares of relative errors over all runs: bytes of each rank, then communication, then
/// the rest of the time.
Calibration calibrate(std::span<const RatedRun> runs);

struct Prediction {
  std::vector<double> sent;               // [ranks] bytes in an iteration
  double communication = 0, seconds = 0;  // of the slowest device, in an iteration
};
/// rate() of the problem on links and devices as calibrated.
Prediction predict(placement::Problem problem, const PlacementPlan& plan,
                   const Calibration& calibration);

}  // namespace recmill::bench
