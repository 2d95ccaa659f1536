// SPDX-License-Identifier: Apache-2.0
// What ranks keep for each other, fetched by id: all that is asked for in one all-to-all, all
// answers in another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"

namespace recmill {

/// Ids that one rank asks another for, in groups (of a table each, say).
struct GroupedIds {
  std::vector<int64_t> ends;  // [groups], into ids
  std::vector<int64_t> ids;   // group after group

  std::span<const int64_t> of(size_t group) const {
    const int64_t begin = group == 0 ? 0 : ends[group - 1];
    return std::span(ids).subspan(begin, ends[group] - begin);
  }
};

/// For one thread. Keeps its memory from call to call.
class BatchedFetch {
 public:
  /// The bytes that go to each rank, in rank order, for what it `asked` [ranks]; valid until the
  /// next call.
  using Answer = std::function<Result<std::vector<std::span<const std::byte>>>(
      std::span<const GroupedIds> asked)>;

  /// All ranks give the same number of groups. The communicator outlives this.
  BatchedFetch(Communicator& communicator, size_t groups);

  /// Collective: tells each rank what is wanted of it and gives what each wants of this one
  /// [ranks], valid until the next call: for who brings the answers in his own way. Fails when a
  /// rank's message is no list of ids in so many groups.
  Result<std::span<const GroupedIds>> ask(std::span<const GroupedIds> wanted);

  /// Collective: asks each rank for `wanted` [ranks] and gives what it answered. Fails when a
  /// rank's message is no list of ids in so many groups; an error of `answer` is returned as it is.
  Result<Received> fetch(std::span<const GroupedIds> wanted, const Answer& answer);

 private:
  Status read_request(std::span<const std::byte> bytes, GroupedIds& request) const;

  Communicator& communicator_;
  const size_t groups_;
  std::vector<std::vector<int64_t>> requests_;  // [ranks]: ends, then ids
  std::vector<GroupedIds> asked_;               // [ranks]
};

}  // namespace recmill
