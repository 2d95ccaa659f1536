// SPDX-License-Identifier: Apache-2.0
#include "placement/targets.h"

namespace recmill::placement {

Targets find_targets(const Problem& problem, const Load&, const Load&, const DeviceCosts&) {
  Targets targets;
  double limits = 0;
  for (const DeviceSpec& device : problem.cluster.devices)
    limits += static_cast<double>(device.memory_bytes);
  for (const DeviceSpec& device : problem.cluster.devices) {
    targets.fetched.push_back(1.0 / problem.devices());
    targets.memory.push_back(static_cast<double>(device.memory_bytes) / limits);
  }
  return targets;
}

}  // namespace recmill::placement
