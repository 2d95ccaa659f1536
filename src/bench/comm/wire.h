// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"
#include "comm/communicator.h"
#include "server/message_line.h"

namespace recmill::bench {

/// TCP connections in a ring: what the network itself takes for bytes.
class Wire {
 public:
  /// Collective; needs two ranks at least.
  static Result<Wire> make(Communicator& communicator);

  /// Sends so many bytes to the next rank, and receives as many from the one before at the same
  /// time.
  Status shift(size_t bytes);

 private:
  Wire(server::MessageLine next, server::MessageLine before)
      : next_(std::move(next)), before_(std::move(before)) {}

  server::MessageLine next_, before_;
};

}  // namespace recmill::bench
