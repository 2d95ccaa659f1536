// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/row_message.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace recmill::store {
namespace {

TEST(RowMessage, comes_back_from_its_bytes_and_refuses_others) {
  const std::vector<int64_t> counts{2, 0, 1}, widths{3, 1, 2};
  RowMessage message;
  std::vector<int64_t> memory(RowMessage::bytes_of(counts, widths) / 8), other(memory.size());
  auto* const begin = reinterpret_cast<std::byte*>(memory.data());
  for (int round = 0; round < 2; ++round) {  // the second one in used memory
    message.begin(begin, counts, widths);
    message.rows(0)[1] = 7;
    message.rows(2)[0] = 9;
    message.values(0)[5] = 1.5f;
    message.values(2)[1] = 2.5f;
  }
  EXPECT_EQ(message.bytes().size() % 64, 0u);
  message.move_to(reinterpret_cast<std::byte*>(other.data()));
  std::ranges::fill(memory, -1);
  message.values(0)[0] = 3.5f;
  const std::vector<std::byte> bytes(message.bytes().begin(), message.bytes().end());
  const auto parsed = RowMessage::parse(bytes, widths);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->count(0), 2);
  EXPECT_EQ(parsed->rows(0)[1], 7);
  EXPECT_EQ(parsed->rows(2)[0], 9);
  EXPECT_EQ(parsed->values(0)[0], 3.5f);
  EXPECT_EQ(parsed->values(0)[5], 1.5f);
  EXPECT_EQ(parsed->values(2)[1], 2.5f);
  EXPECT_FALSE(RowMessage::parse(bytes, std::vector<int64_t>{30, 1, 2}).ok());
  EXPECT_FALSE(RowMessage::parse({}, widths).ok());
}

}  // namespace
}  // namespace recmill::store
