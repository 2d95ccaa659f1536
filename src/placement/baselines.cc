// SPDX-License-Identifier: Apache-2.0
// What OPER is compared with (section 6.4), and plans that users ask for by name.
#include <algorithm>
#include <queue>

#include "placement/build_plan.h"
#include "placement/nodes.h"
#include "placement/planners.h"

namespace recmill::placement {
namespace {

Proposal blank(const Problem& problem, const char* planner) {
  Proposal proposal;
  proposal.plan = blank_plan(problem, planner);
  return proposal;
}

// Rows in as many equal ranges as there are devices.
void split_rows(TablePlacement& table, const std::vector<int>& devices, PlacementPlan& plan) {
  const auto parts = static_cast<int64_t>(devices.size());
  for (int64_t k = 0; k < parts; ++k) {
    const int64_t end = (k + 1) * table.rows / parts;
    if (end == (k * table.rows) / parts) continue;
    table.runs.push_back({end, plan.path(FetchPath::at(devices[k], plan.devices))});
  }
}

std::vector<int> all_devices(int devices) {
  std::vector<int> all;
  for (int d = 0; d < devices; ++d) all.push_back(d);
  return all;
}

}  // namespace

// As many tables on each device, as open DLRM and HugeCTR's localized slots do.
Result<Proposal> plan_table_wise(const Problem& problem) {
  Proposal proposal = blank(problem, "table_wise");
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const int device = static_cast<int>(t % problem.devices());
    TablePlacement& table = proposal.plan.tables[t];
    table.runs = {{table.rows, proposal.plan.path(FetchPath::at(device, problem.devices()))}};
  }
  return proposal;
}

Result<Proposal> plan_row_wise(const Problem& problem) {
  Proposal proposal = blank(problem, "row_wise");
  for (TablePlacement& table : proposal.plan.tables)
    split_rows(table, all_devices(problem.devices()), proposal.plan);
  return proposal;
}

// Columns in groups of 16 over the devices, from one device on after the other; tables of one group
// are stored whole.
Result<Proposal> plan_column_wise(const Problem& problem) {
  Proposal proposal = blank(problem, "column_wise");
  const int devices = problem.devices();
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    TablePlacement& table = proposal.plan.tables[t];
    const auto first = static_cast<int>(t % devices);
    const auto pieces = static_cast<int>(std::min<int64_t>((table.dim + 15) / 16, devices));
    if (pieces < 2) {
      table.runs = {{table.rows, proposal.plan.path(FetchPath::at(first, devices))}};
      continue;
    }
    for (int k = 0; k < pieces; ++k) table.column_devices.push_back((first + k) % devices);
  }
  return proposal;
}

// A table to a node, its rows over the node's devices.
Result<Proposal> plan_table_row_wise(const Problem& problem) {
  Proposal proposal = blank(problem, "table_row_wise");
  const auto nodes = nodes_of(problem.cluster);
  for (size_t t = 0; t < problem.tables.size(); ++t)
    split_rows(proposal.plan.tables[t], nodes[t % nodes.size()], proposal.plan);
  return proposal;
}

Result<Proposal> plan_data_parallel(const Problem& problem) {
  Proposal proposal = blank(problem, "data_parallel");
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const int home = static_cast<int>(t % problem.devices());
    TablePlacement& table = proposal.plan.tables[t];
    const FetchPath path = problem.devices() == 1 ? FetchPath::at(0, 1)
                                                  : FetchPath::everywhere(home, problem.devices());
    table.runs = {{table.rows, proposal.plan.path(path)}};
  }
  return proposal;
}

// All tables one behind the other, cut into parts of as many bytes.
Result<Proposal> plan_memory_greedy(const Problem& problem) {
  Proposal proposal = blank(problem, "memory_greedy");
  const int devices = problem.devices();
  const double part = static_cast<double>(problem.total_bytes()) / devices;
  double before = 0;  // bytes of earlier tables
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    TablePlacement& table = proposal.plan.tables[t];
    const auto row = static_cast<double>(problem.tables[t].row_bytes);
    for (int64_t begin = 0; begin < table.rows;) {
      const int device = std::min(
          static_cast<int>((before + row * static_cast<double>(begin)) / part), devices - 1);
      const auto end = static_cast<int64_t>((part * (device + 1) - before) / row);
      begin = device == devices - 1 ? table.rows : std::clamp(end, begin + 1, table.rows);
      table.runs.push_back({begin, proposal.plan.path(FetchPath::at(device, devices))});
    }
    before += row * static_cast<double>(table.rows);
  }
  return proposal;
}

// Hot rows one by one, the hottest first, then ranges of the others, each to the device with the
// fewest accesses so far.
Result<Proposal> plan_access_greedy(const Problem& problem, const PlannerOptions& options) {
  const std::vector<HotOrder> orders = hot_orders(problem.counts);
  Thresholds single = options.thresholds;
  single.listed_bytes = 1;
  const Partitioning partitioning(problem, orders, single);
  std::vector<size_t> order;
  for (size_t p = 0; p < partitioning.partitions().size(); ++p) order.push_back(p);
  const auto fetched = [&](size_t p) { return partitioning.partitions()[p].load.fetched; };
  std::ranges::stable_sort(order, std::greater<>(), fetched);
  using Device = std::pair<double, int>;
  std::priority_queue<Device, std::vector<Device>, std::greater<>> devices;
  std::vector<FetchPath> paths;
  for (int d = 0; d < problem.devices(); ++d) {
    devices.push({0.0, d});
    paths.push_back(FetchPath::at(d, problem.devices()));
  }
  std::vector<PlacedPartition> placed;
  for (const size_t p : order) {
    const auto [load, device] = devices.top();
    devices.pop();
    devices.push({load + fetched(p), device});
    placed.push_back({&partitioning.partitions()[p], &paths[device]});
  }
  Proposal proposal;
  proposal.plan = build_plan(problem, "access_greedy", placed);
  proposal.partitions = static_cast<int64_t>(placed.size());
  return proposal;
}

}  // namespace recmill::placement
