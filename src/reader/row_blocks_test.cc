// SPDX-License-Identifier: Apache-2.0
#include "reader/row_blocks.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "reader/testing/generated_data.h"
#include "reader/testing/samples_of.h"

namespace recmill::reader {

TEST(RowBlocks, begin_where_reading_can_and_have_rows_enough) {
  using Bounds = std::vector<int64_t>;
  EXPECT_EQ(block_bounds(0, {}, 1000), Bounds{0});
  EXPECT_EQ(block_bounds(1000, {}, 1000), (Bounds{0, 1000}));
  EXPECT_EQ(block_bounds(2500, {}, 1000), (Bounds{0, 1000, 2000, 2500}));
  EXPECT_EQ(block_bounds(4000, Bounds{0, 600, 1200, 1800, 3999}, 1000),
            (Bounds{0, 1200, 3999, 4000}));
  EXPECT_EQ(block_bounds(9000, Bounds{0, 5000}, 1000), (Bounds{0, 5000, 9000}));
  EXPECT_EQ(block_bounds(9000, Bounds{0}, 1000), (Bounds{0, 9000}));
}

TEST(RowBlocks, that_are_not_taken_are_not_decoded) {
  constexpr int64_t kGroups = 8000, kGroupRows = 5;
  const TemporaryFolder folder;
  DataSchema schema;
  schema.ids = {"C1"};
  const ColumnBatch batch = generate(schema, 3, kGroups * kGroupRows);
  for (const char* suffix : {".parquet", ".arrow"}) {
    const std::string path = folder.path() + "/many" + suffix;
    ASSERT_TRUE(write_file(path, schema, batch, kGroupRows).ok());
    ThreadPool pool(2);
    auto reader = open_reader(options_for(path, schema), Subset::train, 0, pool, posix_files());
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    const auto starts = (*reader)->starts();
    ASSERT_TRUE(starts.ok());
    EXPECT_EQ(std::ssize(*starts), kGroups);
    const auto bounds = block_bounds(kGroups * kGroupRows, *starts, kGroupRows);
    std::vector<RowRange> ranges;
    for (size_t b = 7; b < kGroups; b += 20) ranges.push_back({bounds[b], kGroupRows});
    auto some = only_rows(*std::move(reader), ranges);
    ASSERT_TRUE(some.ok()) << some.status().message();
    ColumnBatch rows;
    ASSERT_TRUE((*some)->read(0, 0, kGroups * kGroupRows, rows).ok());
    EXPECT_EQ(rows.samples, kGroups / 20 * kGroupRows);
    EXPECT_EQ((*some)->counts().row_groups, kGroups / 20);  // 5 %
  }
}

}  // namespace recmill::reader
