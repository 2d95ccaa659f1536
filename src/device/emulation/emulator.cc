// SPDX-License-Identifier: Apache-2.0
#include "device/emulation/emulator.h"

#include <algorithm>
#include <memory>

#include "device/check_grid.h"
#include "device/emulation/block.h"

namespace recmill::emulation {
namespace {

// The block of each turn: a permutation, by a step that has no divisor in common with the count.
class BlockOrder {
 public:
  BlockOrder(const Turns& turns, int64_t blocks) : turns_(turns), blocks_(blocks) {
    if (turns.order != Order::random || blocks < 2) return;
    offset_ = static_cast<int64_t>(turns.seed % static_cast<uint64_t>(blocks));
    step_ = static_cast<int64_t>(turns.seed * 0x9e3779b97f4a7c15u % static_cast<uint64_t>(blocks));
    while (greatest_divisor(step_, blocks) != 1) ++step_;
  }
  int64_t at(int64_t turn) const {
    if (turns_.order == Order::reverse) return blocks_ - 1 - turn;
    return static_cast<int64_t>((static_cast<unsigned __int128>(turn) * step_ + offset_) % blocks_);
  }

 private:
  static int64_t greatest_divisor(int64_t a, int64_t b) {
    return b == 0 ? a : greatest_divisor(b, a % b);
  }
  const Turns turns_;
  const int64_t blocks_;
  int64_t step_ = 1, offset_ = 0;
};

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  shared_bytes = std::max(shared_bytes, other.shared_bytes);
  turns += other.turns;
  steps += other.steps;
  warp_steps += other.warp_steps;
  return *this;
}

Result<Usage> run_kernel(const char* name, const Grid& grid, KernelBody body, const void* arguments,
                         const Turns& turns) {
  static thread_local std::unique_ptr<BlockRunner> blocks;  // keeps its stacks
  RECMILL_CHECK(running == nullptr, "a kernel launches a kernel");
  RECMILL_RETURN_IF_ERROR(check_grid(name, grid));
  if (blocks == nullptr) blocks = std::make_unique<BlockRunner>();
  blocks->begin({name, body, arguments, grid, turns});
  const BlockOrder order(turns, grid.blocks.count());
  bool well = true;
  for (int64_t turn = 0; well && turn < grid.blocks.count(); ++turn) {
    const int64_t block = order.at(turn);
    const int64_t plane = int64_t{grid.blocks.x} * grid.blocks.y;
    const Index index{static_cast<unsigned>(block % grid.blocks.x),
                      static_cast<unsigned>(block % plane / grid.blocks.x),
                      static_cast<unsigned>(block / plane)};
    well = blocks->run_block(index, turn);
  }
  blocks->end();
  if (!well) return Status::Failed(blocks->failure().words);
  return blocks->usage();
}

}  // namespace recmill::emulation
