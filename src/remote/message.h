// SPDX-License-Identifier: Apache-2.0
// What ranks and embedding servers send each other (docs/formats/row_service.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recmill::remote {

inline constexpr int64_t kProtocol = 1;

enum class MessageKind : int64_t {
  hello = 1,
  fetch,
  put,
  changed,
  cut,
  record,
  recorded,
  read,
  release,
  goodbye,
  ping,
  status,
  write,
  answer = 100,
  error,
};

/// Bytes that messages share: whoever has a copy keeps them.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::vector<std::byte> bytes) {  // NOLINT: implicit by design
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    view_ = *owner;
    owner_ = std::move(owner);
  }
  /// `view` lives as long as `owner`.
  Bytes(std::shared_ptr<const void> owner, std::span<const std::byte> view)
      : owner_(std::move(owner)), view_(view) {}
  static Bytes text(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }

  std::span<const std::byte> view() const { return view_; }
  size_t size() const { return view_.size(); }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(view_.data()), view_.size()};
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> view_;
};

struct Message {
  MessageKind kind = MessageKind::ping;
  int64_t request = 0;
  int64_t step = 0;
  int64_t detail = 0;
  Bytes body = {};
};

/// The 32 bytes before a body.
using MessageHeader = std::array<std::byte, 32>;
MessageHeader header_of(const Message& message);
/// None: it is not so long, or there is no such kind.
std::optional<Message> message_of(std::span<const std::byte> header, Bytes body);

}  // namespace recmill::remote
