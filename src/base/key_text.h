// SPDX-License-Identifier: Apache-2.0
// The text of a key: of what is kept in a cache, or looked up in a map.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace recmill {

/// Parts one after another, each behind its size, so that other parts are always another text:
/// "a,b" is not "a" and "b". Numbers are exact.
class KeyText {
 public:
  KeyText& add(std::string_view part) {
    text_ += std::to_string(part.size());
    (text_ += ':') += part;
    return *this;
  }
  template <typename Number>
  requires std::integral<Number> || std::floating_point<Number> KeyText& add(Number value) {
    if constexpr (std::same_as<Number, bool> || std::same_as<Number, char>) {
      return add(static_cast<int>(value));
    } else {
      char digits[32];  // the fewest that read back as the same number
      const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
      return add(std::string_view(digits, static_cast<size_t>(end - digits)));
    }
  }
  /// A list: its size, then its items.
  template <typename List>
  KeyText& add_all(const List& parts) {
    add(parts.size());
    for (const auto& part : parts) add(part);
    return *this;
  }

  const std::string& text() const& { return text_; }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace recmill
