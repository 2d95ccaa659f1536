// SPDX-License-Identifier: Apache-2.0
#include "placement/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace recmill::placement {

double memory_of_devices(const Problem& problem) {
  double bytes = 0;
  for (const DeviceSpec& device : problem.cluster.devices)
    bytes += static_cast<double>(device.memory_bytes);
  return bytes;
}

Result<std::vector<double>> memory_budgets(const Problem& problem, double extra) {
  constexpr double kMiB = 1 << 20;
  const double limits = memory_of_devices(problem);
  const auto rows = static_cast<double>(problem.total_bytes());
  if (rows > limits) {
    const auto bytes = [](const PlacedTable& table) { return table.row_bytes * table.spec.rows; };
    const PlacedTable& largest = *std::ranges::max_element(problem.tables, {}, bytes);
    return Status::BadRequest(
        fmt::format("rows do not fit: {:.1f} MiB on {} devices of {:.1f} MiB together, {:.1f} MiB "
                    "too many; the "
                    "largest table is '{}' with {:.1f} MiB",
                    rows / kMiB, problem.devices(), limits / kMiB, (rows - limits) / kMiB,
                    largest.spec.name, static_cast<double>(bytes(largest)) / kMiB));
  }
  std::vector<double> budgets;
  for (const DeviceSpec& device : problem.cluster.devices) {
    const auto limit = static_cast<double>(device.memory_bytes);
    budgets.push_back(std::min(rows * limit / limits * (1 + extra), limit));
  }
  return budgets;
}

}  // namespace recmill::placement
