// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"

namespace recmill {

/// Collective: [ranks], the list of each, which may be of any length.
template <typename T>
Result<std::vector<std::vector<T>>> gather_lists(std::span<const T> own,
                                                 Communicator& communicator) {
  static_assert(std::is_trivially_copyable_v<T>);
  RECMILL_ASSIGN_OR_RETURN(const Received received, communicator.all_gather(std::as_bytes(own)));
  std::vector<std::vector<T>> lists;
  for (int rank = 0; rank < communicator.ranks(); ++rank) {
    const auto bytes = received.from(rank);
    RECMILL_CHECK(bytes.size() % sizeof(T) == 0, communicator.name(rank));
    auto& list = lists.emplace_back(bytes.size() / sizeof(T));
    if (!list.empty()) std::memcpy(list.data(), bytes.data(), bytes.size());
  }
  return lists;
}

/// Collective: [ranks], the value of each.
template <typename T>
Result<std::vector<T>> gather_values(const T& own, Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(const auto lists, gather_lists(std::span(&own, 1), communicator));
  std::vector<T> values;
  for (const std::vector<T>& list : lists) {
    RECMILL_CHECK(list.size() == 1, std::to_string(list.size()));
    values.push_back(list[0]);
  }
  return values;
}

}  // namespace recmill
