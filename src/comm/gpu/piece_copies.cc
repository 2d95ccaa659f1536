// SPDX-License-Identifier: Apache-2.0
#include "comm/gpu/piece_copies.h"

namespace recmill {

std::vector<size_t> places_of(std::span<const DevicePieces> of_ranks) {
  std::vector<size_t> places{0};
  for (const DevicePieces& pieces : of_ranks) {
    size_t bytes = 0;
    for (const DeviceBytes& piece : pieces) bytes += piece.bytes;
    places.push_back(places.back() + bytes);
  }
  return places;
}

Status gather_pieces(const DevicePieces& pieces, std::byte* to, Gpu& gpu, GpuStream& stream) {
  for (const auto& [address, bytes] : pieces) {
    if (bytes == 0) continue;
    RECMILL_RETURN_IF_ERROR(gpu.driver().copy(to, address, bytes, stream.handle()));
    to += bytes;
  }
  return {};
}

Status scatter_pieces(const std::byte* from, const DevicePieces& pieces, Gpu& gpu,
                      GpuStream& stream) {
  for (const auto& [address, bytes] : pieces) {
    if (bytes == 0) continue;
    RECMILL_RETURN_IF_ERROR(gpu.driver().copy(address, from, bytes, stream.handle()));
    from += bytes;
  }
  return {};
}

}  // namespace recmill
