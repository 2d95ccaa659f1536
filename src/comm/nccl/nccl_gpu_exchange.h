// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "comm/gpu/gpu_exchange.h"
#include "comm/nccl/nccl_communicator.h"

namespace recmill {

/// By NCCL, straight between the memory of the GPUs.
class NcclGpuExchange final : public GpuExchange {
 public:
  /// Which outlives it. Streams are of its GPU, or of another Gpu that is the same one.
  explicit NcclGpuExchange(NcclCommunicator& communicator) : communicator_(communicator) {}

  Status all_to_all(std::span<const DevicePieces> to_rank, std::span<const DevicePieces> from_rank,
                    GpuStream& stream) override;
  Status wait(GpuStream& stream) override { return communicator_.wait(stream); }

 private:
  NcclCommunicator& communicator_;
};

}  // namespace recmill
