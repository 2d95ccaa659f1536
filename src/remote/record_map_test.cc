// SPDX-License-Identifier: Apache-2.0
#include "remote/record_map.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace recmill::remote {
namespace {

TEST(RecordMap, has_what_a_std_map_has_under_random_work) {
  for (const int64_t bytes : {2, 12, 4100, 200'000}) {
    std::mt19937_64 random(static_cast<uint64_t>(bytes));
    RecordMap map(bytes);
    std::map<int64_t, std::optional<std::byte>> plain;  // none: an initial row
    const int rows = bytes > 10'000 ? 20 : 3000;
    for (int i = 0; i < 4 * rows; ++i) {
      const auto row = static_cast<int64_t>(random() % static_cast<uint64_t>(rows))
                       << random() % 30;
      if (random() % 3 == 0) {
        map.make_initial(row);
        plain[row] = std::nullopt;
      } else {
        const auto value = static_cast<std::byte>(random());
        std::memset(map.make(row), static_cast<int>(value), static_cast<size_t>(bytes));
        plain[row] = value;
      }
    }
    int64_t records = 0, entries = 0;
    for (const auto& [row, value] : plain) {
      ASSERT_TRUE(map.contains(row));
      const std::byte* record = map.find(row);
      ASSERT_EQ(record != nullptr, value.has_value());
      if (record == nullptr) continue;
      ++records;
      ASSERT_EQ(record[0], *value);
      ASSERT_EQ(record[bytes - 1], *value);
    }
    EXPECT_FALSE(map.contains(int64_t{1} << 60));
    EXPECT_EQ(map.records(), records);
    map.each([&](int64_t row, const std::byte* record) {
      ++entries;
      EXPECT_EQ(record, map.find(row));
    });
    EXPECT_EQ(entries, std::ssize(plain));
  }
}

TEST(RecordMap, takes_records_and_few_bytes_beside_each) {
  RecordMap map(100);
  constexpr int64_t kRows = 200'000;
  for (int64_t row = 0; row < kRows; ++row) map.make(row * 977);
  EXPECT_LT(map.bytes(), kRows * (100 + RecordMap::kMostBytesBeside));
}

}  // namespace
}  // namespace recmill::remote
