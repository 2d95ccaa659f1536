// SPDX-License-Identifier: Apache-2.0
#include "comm/batched_fetch.h"

#include <algorithm>
#include <string>

namespace recmill {

BatchedFetch::BatchedFetch(Communicator& communicator, size_t groups)
    : communicator_(communicator),
      groups_(groups),
      requests_(communicator.ranks()),
      asked_(communicator.ranks()) {}

Result<std::span<const GroupedIds>> BatchedFetch::ask(std::span<const GroupedIds> wanted) {
  RECMILL_CHECK(wanted.size() == requests_.size());
  std::vector<std::span<const std::byte>> outgoing;
  for (size_t rank = 0; rank < wanted.size(); ++rank) {
    RECMILL_CHECK(wanted[rank].ends.size() == groups_);
    requests_[rank] = wanted[rank].ends;
    requests_[rank].insert(requests_[rank].end(), wanted[rank].ids.begin(), wanted[rank].ids.end());
    outgoing.push_back(std::as_bytes(std::span(requests_[rank])));
  }
  RECMILL_ASSIGN_OR_RETURN(const Received received, communicator_.all_to_all(outgoing));
  for (size_t rank = 0; rank < wanted.size(); ++rank) {
    RECMILL_RETURN_IF_ERROR(read_request(received.from(static_cast<int>(rank)), asked_[rank]));
  }
  return std::span<const GroupedIds>(asked_);
}

Result<Received> BatchedFetch::fetch(std::span<const GroupedIds> wanted, const Answer& answer) {
  RECMILL_ASSIGN_OR_RETURN(const auto asked, ask(wanted));
  RECMILL_ASSIGN_OR_RETURN(const auto outgoing, answer(asked));
  return communicator_.all_to_all(outgoing);
}

Status BatchedFetch::read_request(std::span<const std::byte> bytes, GroupedIds& request) const {
  const size_t words = bytes.size() / sizeof(int64_t);
  const auto wrong = [&] {
    return Status::Failed("a request for ids is something else: " + std::to_string(bytes.size()) +
                          " bytes for " + std::to_string(groups_) + " groups");
  };
  if (words * sizeof(int64_t) != bytes.size() || words < groups_) return wrong();
  request.ends.resize(groups_);
  request.ids.resize(words - groups_);
  const auto ends = std::as_writable_bytes(std::span(request.ends));
  std::ranges::copy(bytes.first(ends.size()), ends.begin());
  std::ranges::copy(bytes.subspan(ends.size()),
                    std::as_writable_bytes(std::span(request.ids)).begin());
  const int64_t last = groups_ == 0 ? 0 : request.ends.back();
  const bool ascend = std::ranges::is_sorted(request.ends);
  if (!ascend || (groups_ > 0 && request.ends[0] < 0) ||
      last != static_cast<int64_t>(request.ids.size())) {
    return wrong();
  }
  return {};
}

}  // namespace recmill
