// SPDX-License-Identifier: Apache-2.0
#include "comm/measure_links.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"

namespace recmill {
namespace {

constexpr size_t kShort = 8;  // bytes
constexpr int kTries = 5;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Seconds until `bytes` have come to `to`, which has asked for them. 0 on other ranks.
Result<double> time_message(Communicator& communicator, int to, int from, size_t bytes,
                            std::vector<std::byte>& memory) {
  RECMILL_ASSIGN_OR_RETURN(const auto exchange, communicator.exchange(bytes));
  // All have come, and what they announce is out of the way.
  RECMILL_RETURN_IF_ERROR(exchange->wait(2));
  std::byte go{};
  const std::span<std::byte> message(memory.data(), bytes);
  double seconds = 0;
  if (communicator.rank() == to) {
    const Stopwatch watch;
    RECMILL_RETURN_IF_ERROR(exchange->receive(message, from, 1));
    RECMILL_RETURN_IF_ERROR(exchange->send({&go, 1}, from, 0));
    RECMILL_RETURN_IF_ERROR(exchange->wait(1));
    seconds = watch.seconds();
  } else if (communicator.rank() == from) {
    RECMILL_RETURN_IF_ERROR(exchange->receive({&go, 1}, to, 0));
    RECMILL_RETURN_IF_ERROR(exchange->wait(0));
    RECMILL_RETURN_IF_ERROR(exchange->send(message, to, 1));
    RECMILL_RETURN_IF_ERROR(exchange->wait(1));
  }
  if (communicator.rank() == to) RECMILL_RETURN_IF_ERROR(exchange->wait(0));
  return seconds;
}

Result<LinkSpec> measure_link(Communicator& communicator, int to, int from,
                              std::vector<std::byte>& memory) {
  std::vector<double> shorts, longs;
  for (int i = 0; i < kTries; ++i) {
    for (const auto& [bytes, times] :
         {std::pair{kShort, &shorts}, std::pair{memory.size(), &longs}}) {
      RECMILL_ASSIGN_OR_RETURN(const double seconds,
                               time_message(communicator, to, from, bytes, memory));
      times->push_back(seconds);
    }
  }
  // The short one goes there and back.
  return LinkSpec{median(shorts) / 2, std::max(median(longs) - median(shorts), 1e-9) /
                                          static_cast<double>(memory.size())};
}

}  // namespace

Result<std::vector<LinkSpec>> measure_links(Communicator& communicator, size_t long_bytes) {
  std::vector<std::byte> memory(std::max(long_bytes, kShort + 1));
  std::vector<LinkSpec> own;
  for (int to = 0; to < communicator.ranks(); ++to) {
    for (int from = 0; from < communicator.ranks(); ++from) {
      if (to == from) {
        if (communicator.rank() == to) own.push_back({});
        continue;
      }
      RECMILL_ASSIGN_OR_RETURN(const LinkSpec link, measure_link(communicator, to, from, memory));
      if (communicator.rank() == to) own.push_back(link);
    }
  }
  RECMILL_ASSIGN_OR_RETURN(const Received all,
                           communicator.all_gather(std::as_bytes(std::span(own))));
  std::vector<LinkSpec> links(all.bytes.size() / sizeof(LinkSpec));
  std::memcpy(links.data(), all.bytes.data(), all.bytes.size());
  return links;
}

}  // namespace recmill
