// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <array>
#include <cstring>
#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

#include "base/random.h"

namespace recmill {
namespace {

// Slicing by eight: tables[k][b] is the CRC of byte b followed by k zero bytes.
constexpr auto make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
    tables[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (int k = 1; k < 8; ++k) {
      const uint32_t previous = tables[k - 1][byte];
      tables[k][byte] = (previous >> 8) ^ tables[0][previous & 0xFF];
    }
  }
  return tables;
}
constexpr auto kTables = make_tables();

}  // namespace

uint32_t crc32c_by_tables(std::span<const std::byte> bytes, uint32_t crc) {
  crc = ~crc;
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    word ^= crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; left > 0; --left, ++p) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xFF];
  return ~crc;
}

#if defined(__SSE4_2__)
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  uint64_t state = ~crc;
  const std::byte* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto rest = static_cast<uint32_t>(state);
  for (; left > 0; --left, ++p) rest = _mm_crc32_u8(rest, static_cast<uint8_t>(*p));
  return ~rest;
}
#else
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  return crc32c_by_tables(bytes, crc);
}
#endif

uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001B3ull;
  return Random::mix(hash);
}

}  // namespace recmill
