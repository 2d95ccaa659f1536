// SPDX-License-Identifier: Apache-2.0
#include "store/row_message.h"

#include <gtest/gtest.h>

namespace recmill::store {
namespace {

TEST(RowMessage, comes_back_from_its_bytes_and_refuses_others) {
  const std::vector<int64_t> counts{2, 0, 1}, widths{3, 1, 2};
  RowMessage message;
  for (int round = 0; round < 2; ++round) {  // the second one in used memory
    message.reset(counts, widths);
    message.rows(0)[1] = 7;
    message.rows(2)[0] = 9;
    message.values(0)[5] = 1.5f;
    message.values(2)[1] = 2.5f;
  }
  EXPECT_EQ(message.bytes().size() % 64, 0u);
  const std::vector<std::byte> bytes(message.bytes().begin(), message.bytes().end());
  const auto parsed = RowMessage::parse(bytes, widths);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->count(0), 2);
  EXPECT_EQ(parsed->rows(0)[1], 7);
  EXPECT_EQ(parsed->rows(2)[0], 9);
  EXPECT_EQ(parsed->values(0)[5], 1.5f);
  EXPECT_EQ(parsed->values(2)[1], 2.5f);
  EXPECT_FALSE(RowMessage::parse(bytes, std::vector<int64_t>{30, 1, 2}).ok());
  EXPECT_FALSE(RowMessage::parse({}, widths).ok());
}

}  // namespace
}  // namespace recmill::store
