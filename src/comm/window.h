// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace recmill {

/// Memory of each rank which all ranks load from and store to, zeroed at first. What any rank
/// stored before it came to a fence is seen by every load after that fence. Between two fences no
/// rank may store to what another one loads or stores. Not to outlive its communicator.
class Window {
 public:
  virtual ~Window() = default;
  /// That of `rank`, aligned to 64 bytes: right behind that of the rank before where its size is a
  /// multiple of that.
  virtual std::span<std::byte> of(int rank) const = 0;
  /// Collective: waits until all ranks have come. `what` says what they have in common: an error
  /// where another rank gives another number. Ends with an error when a rank fails.
  virtual Status fence(uint64_t what) = 0;
  /// Adds to its communicator's traffic: bytes for other ranks and of other ranks.
  virtual void count(uint64_t sent, uint64_t received) = 0;
};

}  // namespace recmill
