// SPDX-License-Identifier: Apache-2.0
#include "disk/disk_versions.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "disk/testing/memory_database.h"
#include "table/home/served_rows_contract.h"

namespace recmill::disk {
namespace {

using table::served_rows_contract::table;

std::unique_ptr<DiskVersions> versions_on(std::shared_ptr<testing::MemoryDisk> disk) {
  return std::make_unique<DiskVersions>(std::make_unique<testing::MemoryDatabase>(std::move(disk)),
                                        std::vector{table()});
}

TEST(DiskVersions, show_rows_as_after_every_image_under_random_work) {
  recmill::table::served_rows_contract::run(
      [] {
        auto versions = versions_on(std::make_shared<testing::MemoryDisk>());
        EXPECT_TRUE(versions->clear().ok());
        return versions;
      },
      /*seeds=*/500);
}

TEST(RowBits, find_the_next_row_that_is_set) {
  const std::vector tables{TableSpec{.name = "a", .rows = 3, .optimizer = {}},
                           TableSpec{.name = "b", .rows = 200, .optimizer = {}}};
  RowBits bits(tables);
  EXPECT_EQ(bits.next(1, 0), -1);
  for (const int64_t row : {0, 63, 64, 199}) EXPECT_TRUE(bits.set(1, row));
  EXPECT_FALSE(bits.set(1, 63));
  EXPECT_EQ(bits.next(1, 0), 0);
  EXPECT_EQ(bits.next(1, 1), 63);
  EXPECT_EQ(bits.next(1, 64), 64);
  EXPECT_EQ(bits.next(1, 65), 199);
  EXPECT_EQ(bits.next(1, 200), -1);
  EXPECT_EQ(bits.next(0, 0), -1);
  bits.clear(1, 63);
  EXPECT_EQ(bits.next(1, 1), 64);
  EXPECT_EQ(bits.bytes(), 8 + 32);
}

}  // namespace
}  // namespace recmill::disk
