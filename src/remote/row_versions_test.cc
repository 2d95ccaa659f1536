// SPDX-License-Identifier: Apache-2.0
#include "remote/row_versions.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "table/home/served_rows_contract.h"

namespace recmill::remote {
namespace {

TEST(RowVersions, show_rows_as_after_every_image_under_random_work) {
  table::served_rows_contract::run(
      [] {
        return std::make_unique<MemoryRows>(
            shapes_of(std::vector{table::served_rows_contract::table()}));
      },
      /*seeds=*/500);
}

TEST(RowVersions, keep_a_row_once_for_all_images_that_see_the_same) {
  RowVersions versions({{"t", 100'000, 1000}});
  std::vector<std::byte> record(1000);
  const auto put = [&](int64_t row, int64_t step) { versions.put({0, {&row, 1}, record}, step); };
  for (int64_t row = 0; row < 2000; ++row) put(row, 0);
  versions.cut(0);
  versions.cut(1);
  const int64_t before = versions.image_bytes();
  for (int64_t row = 0; row < 2000; ++row) put(row, 2);
  for (int64_t row = 0; row < 2000; ++row) put(row, 3);
  EXPECT_NEAR(static_cast<double>(versions.image_bytes() - before), 2000 * 1000, 200'000);
}

}  // namespace
}  // namespace recmill::remote
