// SPDX-License-Identifier: Apache-2.0
#include "table/row_share.h"

#include <gtest/gtest.h>

#include <vector>

namespace recmill::table {

TEST(RowShare, gives_every_row_one_owner_and_one_slot_there) {
  for (int64_t rows : {1, 2, 3, 7, 8, 64, 1000, 1460}) {
    for (int ranks : {1, 2, 3, 4, 8}) {
      std::vector<int> seen(rows);
      int64_t slots = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const RowShare share(rows, rank, ranks);
        slots += share.slots();
        for (int64_t slot = 0; slot < share.slots(); ++slot) {
          const int64_t row = share.row(slot);
          ASSERT_GE(row, 0);
          ASSERT_LT(row, rows);
          ++seen[row];
          ASSERT_TRUE(share.owns(row));
          ASSERT_EQ(RowShare(rows, 0, ranks).owner(row), rank);
          ASSERT_EQ(RowShare(rows, (rank + 1) % ranks, ranks).slot(row), slot);
        }
      }
      EXPECT_EQ(slots, rows);
      for (int count : seen) ASSERT_EQ(count, 1);
    }
  }
}

TEST(RowShare, next_finds_every_row_of_the_share_in_ascending_order) {
  for (int64_t rows : {0, 1, 2, 7, 64, 1000, 1460}) {
    for (int ranks : {1, 2, 3, 8}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const RowShare share(rows, rank, ranks);
        std::vector<int64_t> expected, found;
        for (int64_t row = 0; row < rows; ++row) {
          if (share.owns(row)) expected.push_back(row);
        }
        for (int64_t row = share.next(0); row < rows; row = share.next(row + 1)) {
          found.push_back(row);
        }
        ASSERT_EQ(found, expected) << rows << " rows, rank " << rank << " of " << ranks;
      }
    }
  }
}

TEST(RowShare, with_one_rank_the_slot_is_the_row) {
  const RowShare share(int64_t{1} << 40, 0, 1);
  EXPECT_EQ(share.slot((int64_t{1} << 40) - 1), (int64_t{1} << 40) - 1);
  EXPECT_EQ(share.slots(), int64_t{1} << 40);
}

TEST(RowShare, spreads_the_first_rows_and_rows_of_one_parity_evenly) {
  constexpr int64_t kRows = 1000000;
  for (int64_t stride : {1, 2, 8}) {
    std::vector<int> rows_of(4);
    for (int64_t i = 0; i < 1000; ++i) ++rows_of[RowShare(kRows, 0, 4).owner(i * stride)];
    for (int count : rows_of) EXPECT_NEAR(count, 250, 30) << "stride " << stride;
  }
}

TEST(RowShare, inverts_beyond_32_bits) {
  const RowShare share((int64_t{1} << 40) + 7, 123, 1 << 20);
  for (int64_t slot : {int64_t{0}, int64_t{1}, share.slots() - 1}) {
    const int64_t row = share.row(slot);
    EXPECT_TRUE(share.owns(row));
    EXPECT_EQ(share.slot(row), slot);
  }
}

}  // namespace recmill::table
