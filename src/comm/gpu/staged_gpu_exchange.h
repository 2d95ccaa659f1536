// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "comm/communicator.h"
#include "comm/gpu/gpu_exchange.h"

namespace recmill {

/// Through the hosts' memory, over any communicator: all_to_all() waits for the stream, then for
/// the other ranks' messages. The definition of what other ways do.
class StagedGpuExchange final : public GpuExchange {
 public:
  /// Both outlive it. Calls of the communicator are made between those of its owner, in the same
  /// order on all ranks.
  static Result<std::unique_ptr<StagedGpuExchange>> make(Gpu& gpu, Communicator& hosts);

  Status all_to_all(std::span<const DevicePieces> to_rank, std::span<const DevicePieces> from_rank,
                    GpuStream& stream) override;
  Status wait(GpuStream& stream) override { return stream.synchronize(); }

 private:
  StagedGpuExchange(Gpu& gpu, Communicator& hosts) : gpu_(gpu), hosts_(hosts) {}
  Status swap(std::span<const size_t> outgoing, std::span<const size_t> incoming);

  Gpu& gpu_;
  Communicator& hosts_;
  PinnedBuffer outgoing_, incoming_;
  GpuEvent received_;  // incoming_ is on the GPU
};

}  // namespace recmill
