// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"
#include "device/grid.h"

namespace recmill {

constexpr unsigned kMostThreads = 1024;  // of a block

/// Whether every GPU takes so many blocks and threads; else an error that names the kernel.
inline Status check_grid(const std::string& kernel, const Grid& grid) {
  constexpr unsigned kMostBlocksX = 0x7fffffff, kMostBlocksYZ = 0xffff;
  const GridExtent blocks = grid.blocks;
  const auto refuse = [&](const std::string& why) {
    return Status::Failed("kernel " + kernel + ": " + why);
  };
  if (grid.threads.count() < 1 || grid.threads.count() > long{kMostThreads})
    return refuse("a block of " + std::to_string(grid.threads.count()) + " threads, not 1 to 1024");
  if (blocks.count() < 1 || blocks.x > kMostBlocksX || blocks.y > kMostBlocksYZ ||
      blocks.z > kMostBlocksYZ)
    return refuse("a grid of " + std::to_string(blocks.x) + " x " + std::to_string(blocks.y) +
                  " x " + std::to_string(blocks.z) + " blocks");
  return {};
}

}  // namespace recmill
