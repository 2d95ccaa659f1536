// SPDX-License-Identifier: Apache-2.0
#include "placement/oper/choose_pooling.h"

#include <fmt/format.h>

#include "placement/cost_model.h"

namespace recmill::placement {
namespace {

/// Of all devices, for one table.
double seconds_of(const Problem& problem, const PlacementPlan& plan, size_t table) {
  const DeviceCosts costs = costs_of_table(problem, plan, table);
  double seconds = 0;
  for (int device = 0; device < problem.devices(); ++device) seconds += costs.seconds(device);
  return seconds;
}

}  // namespace

void choose_pooling(const Problem& problem, Proposal& proposal) {
  int64_t pooled = 0;
  double before = 0, after = 0;
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    TablePlacement& table = proposal.plan.tables[t];
    if (!problem.tables[t].all_pooled || problem.devices() == 1) continue;
    const double fetching = seconds_of(problem, proposal.plan, t);
    table.send_pooled = true;
    const double pooling = seconds_of(problem, proposal.plan, t);
    table.send_pooled = pooling < fetching;
    if (!table.send_pooled) continue;
    ++pooled;
    before += fetching;
    after += pooling;
  }
  if (pooled == 0) return;
  proposal.notes.push_back(fmt::format(
      "owners pool the bags of {} of {} tables, which take {:.4g} ms of all devices, predicted, "
      "instead of {:.4g}",
      pooled, problem.tables.size(), 1e3 * after, 1e3 * before));
}

}  // namespace recmill::placement
