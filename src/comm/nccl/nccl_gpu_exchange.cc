// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/nccl_gpu_exchange.h"

#include <algorithm>
#include <vector>

namespace recmill {
namespace {

/// Each rank's piece of that number; nothing where it has fewer.
std::vector<DeviceBytes> pieces_at(std::span<const DevicePieces> of_ranks, size_t number) {
  std::vector<DeviceBytes> pieces;
  for (const DevicePieces& of : of_ranks)
    pieces.push_back(number < of.size() ? of[number] : DeviceBytes{});
  return pieces;
}

}  // namespace

// The first pieces of all ranks, then the second ones: who has fewer is not waited for.
Status NcclGpuExchange::all_to_all(std::span<const DevicePieces> to_rank,
                                   std::span<const DevicePieces> from_rank, GpuStream& stream) {
  size_t most = 0;
  for (const auto& of_ranks : {to_rank, from_rank})
    for (const DevicePieces& pieces : of_ranks) most = std::max(most, pieces.size());
  for (size_t number = 0; number < most; ++number)
    RECMILL_RETURN_IF_ERROR(
        communicator_.all_to_all(pieces_at(to_rank, number), pieces_at(from_rank, number), stream));
  return {};
}

}  // namespace recmill
