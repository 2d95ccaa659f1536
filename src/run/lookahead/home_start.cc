// SPDX-License-Identifier: Apache-2.0
#include "run/lookahead/home_start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <span>

#include "base/split_mix.h"

namespace recmill::train {

Result<std::string> text_of_rank_0(const std::string& own, Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(own))));
  const auto bytes = received.from(0);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status all_well(const Status& own, Communicator& communicator) {
  const std::string said = own.code() == Status::Code::bad_request ? "!" + own.message()
                           : own.ok()                              ? ""
                                                                   : "-" + own.message();
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(said))));
  for (int rank = 0; rank < communicator.ranks(); ++rank) {
    const auto bytes = received.from(rank);
    if (bytes.empty()) continue;
    const std::string why(reinterpret_cast<const char*>(bytes.data()) + 1, bytes.size() - 1);
    return bytes[0] == std::byte{'!'} ? Status::BadRequest(why) : Status::Failed(why);
  }
  return {};
}

std::string new_home_run(const ResolvedRun& run) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const auto number =
      split_mix(static_cast<uint64_t>(now) ^ split_mix(static_cast<uint64_t>(getpid())));
  return fmt::format("{}-{:012x}", run.options.name, number >> 16);
}

}  // namespace recmill::train
