// SPDX-License-Identifier: Apache-2.0
#include "device/buffer.h"

#include <gtest/gtest.h>

#include <vector>

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

TEST(SharedPages, give_small_buffers_beside_each_other_and_large_ones_alone) {
  constexpr size_t kLarge = size_t{2} << 20;
  const size_t sizes[] = {100, 64, 0, kLarge, 4096};
  size_t room = 0;
  for (size_t bytes : sizes) room += SharedPages::room_of(bytes);
  EXPECT_EQ(room, 128u + 64 + 4096);
  std::vector<Buffer> buffers;
  {
    auto pages = SharedPages::allocate(room);
    ASSERT_TRUE(pages.ok());
    for (size_t bytes : sizes) {
      auto buffer = pages->take(bytes);
      ASSERT_TRUE(buffer.ok());
      ASSERT_EQ(buffer->size(), bytes);
      buffers.push_back(*std::move(buffer));
    }
  }  // buffers outlive it
  EXPECT_EQ(buffers[1].data(), buffers[0].data() + 128);
  EXPECT_EQ(buffers[4].data(), buffers[1].data() + 64);
  for (size_t gone : {0, 1}) buffers[gone] = Buffer();
  for (const Buffer& buffer : buffers) {
    for (auto& byte : buffer.as<unsigned char>()) {
      ASSERT_EQ(byte, 0);
      byte = 7;
    }
  }
}

}  // namespace recmill
