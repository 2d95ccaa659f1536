// SPDX-License-Identifier: Apache-2.0
#include "device/buffer.h"

#include <gtest/gtest.h>

namespace recmill {

TEST(Buffer, is_zeroed_and_aligned_at_every_size) {
  for (size_t bytes :
       {size_t{0}, size_t{1}, size_t{4096}, size_t{4097}, size_t{2} << 20, (size_t{5} << 20) + 3}) {
    auto buffer = Buffer::allocate(bytes);
    ASSERT_TRUE(buffer.ok());
    ASSERT_EQ(buffer->size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    for (auto byte : buffer->as<unsigned char>()) ASSERT_EQ(byte, 0);
    if (bytes > 0) buffer->as<unsigned char>()[bytes - 1] = 1;
  }
}

TEST(Buffer, more_than_the_machine_has_is_an_error_that_names_the_size) {
  const auto buffer = Buffer::allocate(size_t{1} << 60);
  ASSERT_FALSE(buffer.ok());
  EXPECT_NE(buffer.status().message().find("1152921504606846976"), std::string::npos);
}

TEST(Buffer, moves) {
  auto first = Buffer::allocate(64);
  ASSERT_TRUE(first.ok());
  Buffer second = *std::move(first);
  EXPECT_EQ(second.size(), 64u);
}

}  // namespace recmill
