// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"

namespace recmill {

/// Messages of known sizes straight between the memory of two ranks, many under way at a time. The
/// n-th message that a rank sends to another is the n-th that the other receives from it, and both
/// give its size. A group is any small number that the caller gives to messages it waits for
/// together; it may be used again after its wait.
class Exchange {
 public:
  /// Gives up what is under way: afterwards nobody reads or writes memory of this rank's messages.
  virtual ~Exchange() = default;
  /// Not to itself. The memory stays as it is until the group is done.
  virtual Status send(std::span<const std::byte> bytes, int to, int group) = 0;
  /// Not from itself. The memory is nobody else's until the group is done.
  virtual Status receive(std::span<std::byte> bytes, int from, int group) = 0;
  /// Waits for all messages of the group. Ends with an error when a rank fails.
  virtual Status wait(int group) = 0;
};

}  // namespace recmill
