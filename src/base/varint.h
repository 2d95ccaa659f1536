// SPDX-License-Identifier: Apache-2.0
// Numbers in as few bytes as they need: seven bits a byte, the lowest first, the top bit set where
// more follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace recmill {

inline void append_varint(std::vector<std::byte>& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::byte>(value | 0x80));
  bytes.push_back(static_cast<std::byte>(value));
}

/// Takes numbers off the front of bytes. Past their end, or where a number does not fit 64 bits,
/// it gives 0 and is no longer whole().
class VarintReader {
 public:
  explicit VarintReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t next() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<uint64_t>(bytes_[at_++]);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) {
        if (shift == 63 && byte > 1) break;
        return value;
      }
    }
    whole_ = false;
    at_ = bytes_.size();
    return 0;
  }
  bool whole() const { return whole_; }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool whole_ = true;
};

}  // namespace recmill
