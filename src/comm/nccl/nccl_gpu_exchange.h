// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "comm/gpu/gpu_exchange.h"
#include "comm/nccl/nccl_communicator.h"

namespace recmill {

/// By NCCL, straight between the memory of the GPUs.
class NcclGpuExchange final : public GpuExchange {
 public:
  /// Both outlive it. Streams are of this Gpu, which is the communicator's or the same one.
  NcclGpuExchange(Gpu& gpu, NcclCommunicator& communicator)
      : gpu_(gpu), communicator_(communicator) {}
  ~NcclGpuExchange() override;

  Status all_to_all(std::span<const DevicePieces> to_rank, std::span<const DevicePieces> from_rank,
                    GpuStream& stream) override;
  /// What this rank's GPU does between messages has the GPU's time limit, and messages that of the
  /// communicator.
  Status wait(GpuStream& stream) override;

 private:
  Status mark(GpuStream& stream);
  Status pass_marks();
  bool has_begun_messages() const { return marks_.size() % 2 == 1; }

  Gpu& gpu_;
  NcclCommunicator& communicator_;
  std::deque<GpuDriver::Event> marks_;     // of messages that have not ended: beginning and end
  std::vector<GpuDriver::Event> resting_;  // that were passed
};

}  // namespace recmill
