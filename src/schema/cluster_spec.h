// SPDX-License-Identifier: Apache-2.0
// The machines that a run uses, as a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/device_kind.h"

namespace recmill {

struct DeviceSpec {
  std::string name;  // "cpu0"
  int64_t memory_bytes = 0;
  DeviceKind kind = DeviceKind::cpu;
  int64_t l2_bytes = 1 << 20;      // a core's own (a CUDA device: shared memory of an SM)
  int64_t shared_cache_bytes = 0;  // the last-level cache of all cores; 0: none
};

/// What it takes a device to have bytes of another one's memory, or of its own: messages times
/// message_seconds + bytes times byte_seconds.
struct LinkSpec {
  double message_seconds = 0;
  double byte_seconds = 0;
  bool operator==(const LinkSpec&) const = default;
};

struct ClusterSpec {
  std::vector<DeviceSpec> devices;  // one for each rank
  /// [devices][devices], from the device that fetches to the one that it fetches from; of a device
  /// to itself: the lookup. OPER's matrix L (section 3.2). Empty: not known.
  std::vector<LinkSpec> links = {};

  int size() const { return static_cast<int>(devices.size()); }
  const LinkSpec& link(int to, int from) const {
    return links[static_cast<size_t>(to) * devices.size() + from];
  }
};

/// Bytes that something will allocate on one device, by purpose, before it does.
struct MemoryItem {
  std::string what;  // "table C3: weights"
  int device = 0;
  int64_t bytes = 0;
  bool certain = true;  // else an estimate, or taken already: no reason to refuse a run
};
struct MemoryLedger {
  std::vector<MemoryItem> items;
  int64_t total(int device) const {
    int64_t sum = 0;
    for (const auto& item : items) sum += item.device == device ? item.bytes : 0;
    return sum;
  }
};

}  // namespace recmill
