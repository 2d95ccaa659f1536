// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/row_group_order.h"

#include <gtest/gtest.h>

#include <set>

namespace recmill::reader {
namespace {

TEST(RowGroupOrder, a_large_row_group_is_cut_and_an_empty_one_is_no_slice) {
  const std::vector<int64_t> groups{5, 0, 10, 1};
  const auto slices = cut_row_groups(groups, 4);
  const std::vector<RowSlice> expected{{0, 0, 4, 4, 0, 0},   {0, 4, 1, 1, 4, 4},
                                       {2, 0, 4, 4, 5, 5},   {2, 4, 4, 4, 9, 9},
                                       {2, 8, 2, 2, 13, 13}, {3, 0, 1, 1, 15, 15}};
  EXPECT_EQ(slices, expected);
  EXPECT_EQ(slices_of_epoch(slices, ShuffleKind::none, 1, 0), expected);
}

TEST(RowGroupOrder, an_epoch_keeps_the_slices_of_a_row_group_together_and_counts_kept_rows) {
  const std::vector<int64_t> groups(40, 10);
  auto data = cut_row_groups(groups, 4);
  for (size_t i = 0; i < data.size(); ++i) data[i].kept = static_cast<int64_t>(i % 4);
  const auto epoch = slices_of_epoch(data, ShuffleKind::window, 7, 2);
  ASSERT_EQ(epoch.size(), data.size());
  std::set<int64_t> seen;
  int64_t position = 0;
  for (size_t i = 0; i < epoch.size(); ++i) {
    EXPECT_EQ(epoch[i].position, position);
    position += epoch[i].kept;
    if (i % 3 == 0) {
      EXPECT_TRUE(seen.insert(epoch[i].group).second);
    } else {
      EXPECT_EQ(epoch[i].group, epoch[i - 1].group);
      EXPECT_EQ(epoch[i].begin, epoch[i - 1].begin + epoch[i - 1].rows);
    }
  }
  EXPECT_NE(epoch, slices_of_epoch(data, ShuffleKind::window, 7, 3));
  EXPECT_EQ(epoch, slices_of_epoch(data, ShuffleKind::window, 7, 2));
}

}  // namespace
}  // namespace recmill::reader
