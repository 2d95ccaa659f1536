// SPDX-License-Identifier: Apache-2.0
// A network inside the process that behaves as badly as a network may: for tests.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/link.h"

namespace recmill {

/// Messages are moved in pieces, which arrive late, in any order, those of one message after those
/// of later ones; a small one may leave its sender's memory long before it arrives, and what one
/// rank tells of a failure reaches the others at different times. All of that is a function of the
/// seed and of the order in which ranks look.
class SimulatedNetwork {
 public:
  /// `shares_memory`: as if all ranks were on one host.
  SimulatedNetwork(int ranks, uint64_t seed, bool shares_memory);

  /// For one thread; keeps what it needs of the network alive. One for each rank.
  std::unique_ptr<Link> link(int rank) const;
  /// Nothing comes from `rank` any more, nor gets there.
  void cut(int rank) const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace recmill
