// SPDX-License-Identifier: Apache-2.0
#include "bench/comm/wire.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace recmill::bench {
namespace {

constexpr int kWaitMilliseconds = 10'000;
constexpr size_t kAtOnce = 256 << 10;  // bytes

Status failure(const char* call) {
  return Status::Failed(std::string("bench comm: ") + call + ": " + std::strerror(errno));
}

Status wait(std::span<pollfd> descriptors) {
  const int ready = poll(descriptors.data(), descriptors.size(), kWaitMilliseconds);
  if (ready < 0 && errno != EINTR) return failure("poll");
  return ready == 0 ? Status::Failed("bench comm: a TCP connection does not move") : Status();
}

}  // namespace

Result<Wire> Wire::make(Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(auto listener, server::MessageListener::open());
  const std::string& own = listener.addresses();
  RECMILL_ASSIGN_OR_RETURN(const Received all,
                           communicator.all_gather(std::as_bytes(std::span(own))));
  const auto text = all.from((communicator.rank() + 1) % communicator.ranks());
  RECMILL_ASSIGN_OR_RETURN(
      auto next, server::connect_to({reinterpret_cast<const char*>(text.data()), text.size()}));
  std::optional<server::MessageLine> before;
  while (!(before = listener.accept())) {
    pollfd waits{listener.descriptor(), POLLIN, 0};
    RECMILL_RETURN_IF_ERROR(wait(std::span(&waits, 1)));
  }
  return Wire(std::move(next), *std::move(before));
}

Status Wire::shift(size_t bytes) {
  static const std::vector<std::byte> sent(kAtOnce);
  std::vector<std::byte> received(kAtOnce);
  size_t to_send = bytes, to_receive = bytes;
  while (to_send > 0 || to_receive > 0) {
    pollfd waits[2] = {{next_.descriptor(), static_cast<short>(to_send > 0 ? POLLOUT : 0), 0},
                       {before_.descriptor(), static_cast<short>(to_receive > 0 ? POLLIN : 0), 0}};
    RECMILL_RETURN_IF_ERROR(wait(waits));
    if (to_send > 0) {
      const ssize_t count =
          ::send(next_.descriptor(), sent.data(), std::min(to_send, kAtOnce), MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN && errno != EINTR) return failure("send");
      to_send -= std::max<ssize_t>(count, 0);
    }
    if (to_receive > 0) {
      const ssize_t count =
          ::recv(before_.descriptor(), received.data(), std::min(to_receive, kAtOnce), 0);
      if (count == 0) return Status::Failed("bench comm: a TCP connection was closed");
      if (count < 0 && errno != EAGAIN && errno != EINTR) return failure("recv");
      to_receive -= std::max<ssize_t>(count, 0);
    }
  }
  return {};
}

}  // namespace recmill::bench
