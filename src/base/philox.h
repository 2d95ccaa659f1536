// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10 (Salmon et al., SC 2011), on every device.
#pragma once

#include <array>
#include <cstdint>

namespace recmill {

struct PhiloxCounter {
  uint32_t words[4];
};

/// Ten rounds of Philox 4x32. Reference: the "philox4x32 10" vectors of Random123.
constexpr std::array<uint32_t, 4> philox(PhiloxCounter counter, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = counter.words[0], c1 = counter.words[1];
  uint32_t c2 = counter.words[2], c3 = counter.words[3];
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

}  // namespace recmill
