// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/gpu/gpu_exchange.h"

namespace recmill {

/// Where each rank's pieces are, one after the other: [ranks + 1], bytes.
std::vector<size_t> places_of(std::span<const DevicePieces> of_ranks);

/// Enqueues copies of the pieces to what begins at `to`, of any GPU or pinned, one after the other.
Status gather_pieces(const DevicePieces& pieces, std::byte* to, Gpu& gpu, GpuStream& stream);
/// And back.
Status scatter_pieces(const std::byte* from, const DevicePieces& pieces, Gpu& gpu,
                      GpuStream& stream);

}  // namespace recmill
