// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace recmill {

TEST(Crc32c, equals_the_published_check_value) {
  const std::string text = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(text))), 0xE3069283u);
  EXPECT_EQ(crc32c_by_tables(std::as_bytes(std::span(text))), 0xE3069283u);
}

TEST(Crc32c, continues_over_pieces) {
  std::string text;
  for (int i = 0; i < 100; ++i) text.push_back(static_cast<char>(i * 7));
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))), crc32c(bytes)) << cut;
  }
}

TEST(Crc32c, is_the_same_with_and_without_the_instruction) {
  std::string text;
  for (int i = 0; i < 100; ++i) text.push_back(static_cast<char>(i * 37));
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 0; begin + size <= bytes.size(); ++size) {
      const auto piece = bytes.subspan(begin, size);
      ASSERT_EQ(crc32c(piece, 5), crc32c_by_tables(piece, 5)) << begin << ' ' << size;
    }
  }
}

TEST(HashBytes, is_the_same_on_every_machine) {
  EXPECT_EQ(hash_bytes(""), 0xC3817C016BA4FF30ull);
  EXPECT_NE(hash_bytes("a"), hash_bytes("b"));
}

}  // namespace recmill
