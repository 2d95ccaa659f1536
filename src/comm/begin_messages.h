// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "comm/exchange.h"

namespace recmill {

/// Begins a message of outgoing[r] to each other rank r, and one of incoming[r] from it, whose
/// sizes both ranks know alike; where there is nothing to send there is no message. [ranks] each.
inline Status begin_messages(Exchange& exchange, int rank,
                             std::span<const std::vector<float>> outgoing,
                             std::span<std::vector<float>> incoming, int group) {
  for (int other = 0; other < static_cast<int>(outgoing.size()); ++other) {
    if (other == rank) continue;
    if (!outgoing[other].empty())
      RECMILL_RETURN_IF_ERROR(
          exchange.send(std::as_bytes(std::span(outgoing[other])), other, group));
    if (!incoming[other].empty())
      RECMILL_RETURN_IF_ERROR(
          exchange.receive(std::as_writable_bytes(std::span(incoming[other])), other, group));
  }
  return {};
}

}  // namespace recmill
