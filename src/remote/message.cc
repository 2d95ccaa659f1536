// SPDX-License-Identifier: Apache-2.0
#include "remote/message.h"

#include <bit>
#include <cstring>

namespace recmill::remote {

static_assert(std::endian::native == std::endian::little);

MessageHeader header_of(const Message& message) {
  const std::array<int64_t, 4> words{static_cast<int64_t>(message.kind), message.request,
                                     message.step, message.detail};
  return std::bit_cast<MessageHeader>(words);
}

std::optional<Message> message_of(std::span<const std::byte> header, Bytes body) {
  std::array<int64_t, 4> words{};
  if (header.size() != sizeof(words)) return std::nullopt;
  std::memcpy(words.data(), header.data(), sizeof(words));
  const bool is_request = words[0] >= static_cast<int64_t>(MessageKind::hello) &&
                          words[0] <= static_cast<int64_t>(MessageKind::write);
  const bool is_answer = words[0] == static_cast<int64_t>(MessageKind::answer) ||
                         words[0] == static_cast<int64_t>(MessageKind::error);
  if (!is_request && !is_answer) return std::nullopt;
  return Message{static_cast<MessageKind>(words[0]), words[1], words[2], words[3], std::move(body)};
}

}  // namespace recmill::remote
