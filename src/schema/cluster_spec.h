// SPDX-License-Identifier: Apache-2.0
// The machines that a run uses, as a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace recmill {

enum class DeviceKind { cpu, cuda };

struct DeviceSpec {
  std::string name;  // "cpu0"
  int64_t memory_bytes = 0;
  DeviceKind kind = DeviceKind::cpu;
  int64_t l2_bytes = 1 << 20;  // a core's own (a CUDA device: shared memory of a multiprocessor)
  int64_t shared_cache_bytes = 0;  // the last-level cache of all cores; 0: none
};

struct ClusterSpec {
  std::vector<DeviceSpec> devices;  // one for each rank
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
