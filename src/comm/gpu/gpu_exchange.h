// SPDX-License-Identifier: Apache-2.0
// Messages between the memory of ranks' GPUs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/gpu/gpu.h"

namespace recmill {

/// Some of a GPU's memory.
struct DeviceBytes {
  void* address = nullptr;
  size_t bytes = 0;
};

/// What goes from one rank to another: pieces, none or several, of any size.
using DevicePieces = std::vector<DeviceBytes>;

/// Every call is collective, as those of a Communicator; for one thread.
class GpuExchange {
 public:
  virtual ~GpuExchange() = default;
  /// In the order of a stream of this rank's GPU: sends to_rank[r] to rank r and receives
  /// from_rank[r] from it; [ranks], this rank's own have no pieces. The n-th piece that a rank
  /// sends to another is the n-th that the other receives from it, of as many bytes. What is
  /// enqueued on the stream afterwards finds what was received, and may overwrite what was sent.
  virtual Status all_to_all(std::span<const DevicePieces> to_rank,
                            std::span<const DevicePieces> from_rank, GpuStream& stream) = 0;
  /// Returns when what is enqueued on the stream has happened, messages among it. Fails as it did,
  /// and where another rank fails.
  virtual Status wait(GpuStream& stream) = 0;
};

}  // namespace recmill
