// SPDX-License-Identifier: Apache-2.0
#include "table/table_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "table/embedding_table.h"

namespace recmill::table {
namespace {

TableSpec table_of(int64_t rows, int64_t dim, Sharding sharding) {
  TableSpec spec;
  spec.name = "t";
  spec.rows = rows;
  spec.dim = dim;
  spec.optimizer.kind = OptimizerKind::adam;
  spec.sharding = sharding;
  return spec;
}

/// The rank that holds each table whole; -1: none does.
std::vector<int> homes(const std::vector<TableSpec>& tables, int ranks) {
  std::vector<int> homes(tables.size(), -1);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto shares = shares_of(tables, rank, ranks);
    for (size_t t = 0; t < tables.size(); ++t)
      if (shares[t].rows.slots() == tables[t].rows) homes[t] = rank;
  }
  return homes;
}

}  // namespace

TEST(SharesOf, gives_every_row_of_every_table_one_owner_that_all_ranks_name) {
  std::vector<TableSpec> tables;
  for (const int64_t rows : {1, 2, 7, 64, 1000}) {
    for (const auto& [sharding, name] : EnumNames<Sharding>::names)
      tables.push_back(table_of(rows, 4, sharding));  // too narrow for its columns to be split
  }
  for (const int ranks : {1, 2, 3, 4, 8}) {
    std::vector<std::vector<TableShare>> shares;
    for (int rank = 0; rank < ranks; ++rank) shares.push_back(shares_of(tables, rank, ranks));
    for (size_t t = 0; t < tables.size(); ++t) {
      for (int64_t row = 0; row < tables[t].rows; ++row) {
        const auto [owner, slot] = shares[0][t].rows.home(row);
        for (int rank = 0; rank < ranks; ++rank) {
          const RowShare& share = shares[rank][t].rows;
          ASSERT_EQ(share.owner(row), owner);
          ASSERT_EQ(share.slot(row), slot);
          ASSERT_EQ(share.owns(row), rank == owner);
          ASSERT_TRUE(rank != owner || share.row(slot) == row);
        }
      }
    }
  }
}

TEST(SharesOf, by_row_range_a_rank_holds_rows_that_follow_each_other) {
  for (const int64_t rows : {1, 2, 7, 64, 1000}) {
    for (const int64_t ranks : {1, 2, 3, 4, 8}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const auto share = shares_of(std::vector{table_of(rows, 4, Sharding::row_range)}, rank,
                                     static_cast<int>(ranks))[0]
                               .rows;
        const RowRange expected{rank * rows / ranks, (rank + 1) * rows / ranks};
        EXPECT_EQ(share.slots(), expected.size());
        if (expected.size() == 0) continue;
        EXPECT_EQ(share.extent(), expected);
        EXPECT_EQ(share.row(0), expected.begin);
        EXPECT_EQ(share.next(0), expected.begin);
        EXPECT_EQ(share.next(expected.end), rows);
      }
    }
  }
}

TEST(SharesOf, by_column_ranks_hold_ranges_of_16_columns_that_make_up_all_rows) {
  for (const int64_t dim : {1, 15, 16, 17, 40, 200}) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      const std::vector<TableSpec> tables(5, table_of(7, dim, Sharding::column));
      std::vector<std::vector<int>> owners(tables.size(), std::vector<int>(dim, -1));
      std::vector<int> pieces(tables.size());
      for (int rank = 0; rank < ranks; ++rank) {
        const auto shares = shares_of(tables, rank, ranks);
        for (size_t t = 0; t < tables.size(); ++t) {
          if (shares[t].rows.slots() == 0) continue;
          EXPECT_EQ(shares[t].rows.extent(), (RowRange{0, 7}));
          const ColumnRange own = shares[t].own_columns(dim);
          EXPECT_EQ(own.first % 16, 0);
          EXPECT_TRUE(own.end() == dim || own.end() % 16 == 0);
          for (int64_t e = own.first; e < own.end(); ++e) {
            EXPECT_EQ(owners[t][e], -1) << "two owners of column " << e;
            owners[t][e] = rank;
          }
          ++pieces[t];
        }
      }
      for (size_t t = 0; t < tables.size(); ++t) {
        EXPECT_EQ(owners[t][0], static_cast<int>(t) % ranks) << "table " << t;
        EXPECT_EQ(std::ranges::count(owners[t], -1), 0) << dim << " columns, " << ranks << " ranks";
        EXPECT_EQ(pieces[t], std::min<int64_t>(ranks, (dim + 15) / 16));
      }
    }
  }
}

TEST(SharesOf, whole_tables_go_by_size_to_the_least_loaded_rank_and_ties_to_the_lowest) {
  const auto whole = [](int64_t rows) { return table_of(rows, 4, Sharding::table); };
  EXPECT_EQ(homes({whole(10), whole(40), whole(30), whole(20)}, 2), (std::vector{0, 0, 1, 1}));
  EXPECT_EQ(homes({whole(10), whole(10), whole(10), whole(10)}, 3), (std::vector{0, 1, 2, 0}));
  // What is split otherwise counts: rank 1 has two of three rows.
  const auto uneven = table_of(3, 4, Sharding::row_range);
  EXPECT_EQ(homes({uneven, whole(1), whole(1)}, 2), (std::vector{-1, 0, 0}));
}

TEST(SharesOf, whole_tables_leave_ranks_apart_by_no_more_than_one_table) {
  std::vector<TableSpec> tables;
  for (int64_t t = 0; t < 40; ++t)
    tables.push_back(table_of(1 + t * t * 37 % 500, 1 + t % 5 * 8, Sharding::table));
  for (const int ranks : {2, 3, 4, 8}) {
    std::vector<int64_t> bytes(ranks);
    int64_t largest = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto shares = shares_of(tables, rank, ranks);
      for (size_t t = 0; t < tables.size(); ++t) {
        bytes[rank] += EmbeddingTable::bytes(tables[t], shares[t]);
        largest = std::max(largest, EmbeddingTable::bytes(tables[t], shares[t]));
      }
    }
    EXPECT_LE(std::ranges::max(bytes) - std::ranges::min(bytes), largest) << ranks << " ranks";
  }
}

}  // namespace recmill::table
