// SPDX-License-Identifier: Apache-2.0
#include "placement/few/path_steps.h"

#include <limits>

namespace recmill::placement {

int nearest_copy(const Problem& problem, const FetchPath& path, int device, int turn) {
  double fastest = std::numeric_limits<double>::infinity();
  int count = 0;
  for (int from = 0; from < problem.devices(); ++from) {
    if (!path.has_copy(from)) continue;
    const double seconds = problem.cluster.link(device, from).byte_seconds;
    if (seconds < fastest) fastest = seconds, count = 0;
    count += seconds == fastest;
  }
  int left = (device + turn) % count;
  for (int from = 0;; ++from)
    if (path.has_copy(from) && problem.cluster.link(device, from).byte_seconds == fastest &&
        left-- == 0)
      return from;
}

FetchPath with_copy(const Problem& problem, const FetchPath& path, int device) {
  FetchPath more = path;
  more.from[device] = device;
  for (int other = 0; other < problem.devices(); ++other)
    if (!more.has_copy(other) && problem.cluster.link(other, device).byte_seconds <
                                     problem.cluster.link(other, more.from[other]).byte_seconds)
      more.from[other] = device;
  return more;
}

FetchPath without_copy(const Problem& problem, const FetchPath& path, int device) {
  FetchPath less = path;
  less.from[device] = -1;
  for (int to = 0; to < problem.devices(); ++to)
    if (path.from[to] == device) less.from[to] = nearest_copy(problem, less, to);
  if (less.home == device) less.home = less.from[device];
  return less;
}

}  // namespace recmill::placement
