// SPDX-License-Identifier: Apache-2.0
#include "placement/nodes.h"

#include <algorithm>
#include <limits>

namespace recmill::placement {

std::vector<std::vector<int>> nodes_of(const ClusterSpec& cluster) {
  double fastest = std::numeric_limits<double>::infinity();
  for (int to = 0; to < cluster.size(); ++to)
    for (int from = 0; from < cluster.size(); ++from)
      if (to != from) fastest = std::min(fastest, cluster.link(to, from).byte_seconds);
  std::vector<std::vector<int>> nodes;
  for (int device = 0; device < cluster.size(); ++device) {
    const auto near = std::ranges::find_if(nodes, [&](const std::vector<int>& node) {
      return cluster.link(device, node[0]).byte_seconds <= 2 * fastest;
    });
    if (near == nodes.end()) {
      nodes.push_back({device});
    } else {
      near->push_back(device);
    }
  }
  return nodes;
}

}  // namespace recmill::placement
