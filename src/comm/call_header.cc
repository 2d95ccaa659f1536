// SPDX-License-Identifier: Apache-2.0
#include "comm/call_header.h"

#include <fmt/format.h>

namespace recmill {

using Call = CallHeader::Call;

const char* name_of(Call call) {
  constexpr const char* kNames[] = {"all-to-all", "all-gather", "broadcast",
                                    "barrier",    "exchange",   "window"};
  return kNames[static_cast<int>(call)];
}

Status check(const CallHeader& header, const CallHeader& expected, const std::string& from) {
  const bool sized = expected.call == Call::broadcast || expected.call == Call::exchange;
  if (header.call == expected.call && header.number == expected.number &&
      header.root == expected.root && (!sized || header.bytes == expected.bytes))
    return {};
  const auto text = [&](const CallHeader& of) {
    std::string line = fmt::format("{} {}", name_of(of.call), of.number);
    if (of.call == Call::broadcast)
      line += fmt::format(" of {} bytes from rank {}", of.bytes, of.root);
    if (of.call == Call::exchange) line += fmt::format(" of {}", of.bytes);
    return line;
  };
  return Status::Failed(
      fmt::format("{} is in another call: {}, here {}", from, text(header), text(expected)));
}

}  // namespace recmill
