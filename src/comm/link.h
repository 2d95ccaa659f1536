// SPDX-License-Identifier: Apache-2.0
// What a MessageCommunicator needs of a network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>

#include "base/status.h"

namespace recmill {

/// Since the last look: nothing, something, so much that a network was idle before this look, or
/// all that was waited for.
enum class Progress { none, some, idle, all };

/// Messages of any size under way between a rank and others. The n-th message that a rank sends to
/// another is the n-th that the other receives from it; they may end in another order.
class Transfers {
 public:
  /// Gives up what is under way: no message is received afterwards, and none that nobody receives
  /// is read from its memory.
  virtual ~Transfers() = default;
  /// The memory is the network's until all are done.
  virtual Status send(std::span<const std::byte> bytes, int to) = 0;
  /// As many bytes as the other sends.
  virtual Status receive(std::span<std::byte> bytes, int from) = 0;
  /// Moves them on.
  virtual Result<Progress> advance() = 0;
  /// The ranks that messages are to come from or go to.
  virtual std::set<int> waited_for() const = 0;
};

/// What a rank that has failed tells the others.
struct FailureNote {
  int32_t rank = 0;
  int32_t code = 0;
  char text[1016] = {};
};

/// One rank's end of the network. For one thread, except for tell().
class Link {
 public:
  virtual ~Link() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual std::unique_ptr<Transfers> transfers() = 0;
  /// To all other ranks, beside all transfers. Any thread; does not wait, and who cannot be told is
  /// left out. Messages of a link that has told of a failure may be left when it ends.
  virtual void tell(const FailureNote& note) = 0;
  /// Whether another rank has told something, once: the first that is heard.
  virtual Result<bool> hears(FailureNote& note) = 0;
  /// Whether all ranks are on one host. The same on all ranks.
  virtual bool shares_memory() const = 0;
  /// Another link between the same ranks. Collective.
  virtual Result<std::unique_ptr<Link>> duplicate() = 0;
};

}  // namespace recmill
