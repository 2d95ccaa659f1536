// SPDX-License-Identifier: Apache-2.0
#include "table/placed_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "placement_plan/testing/random_plan.h"

namespace recmill::table {
namespace {

TableSpec table_of(int64_t rows, int64_t dim) {
  TableSpec spec;
  spec.name = "t";
  spec.rows = rows;
  spec.dim = dim;
  return spec;
}

/// `share` is what `rank` holds of table `t` by the plan.
void expect_as_planned(const TableShare& share, const PlacementPlan& plan, size_t t, int rank) {
  const TablePlacement& table = plan.tables[t];
  if (!table.column_devices.empty()) {
    const auto piece = std::ranges::find(table.column_devices, rank);
    const bool whole = table.column_devices.size() == 1;
    EXPECT_EQ(share.rows.slots(), piece == table.column_devices.end() ? 0 : table.rows);
    EXPECT_EQ(share.columns.is_split(), !whole);
    if (whole) return;
    for (size_t k = 0; k < table.column_devices.size(); ++k)
      EXPECT_EQ(share.columns.rank_of(static_cast<int>(k)), table.column_devices[k]);
    EXPECT_EQ(share.columns.piece_of(rank),
              piece == table.column_devices.end() ? -1 : piece - table.column_devices.begin());
    return;
  }
  PathCursor cursor(table);
  int64_t next = share.rows.next(0), next_held = share.rows.next_held(0, table.rows), held = 0;
  for (int64_t row = 0; row < table.rows; ++row) {
    const FetchPath& path = plan.paths[cursor.at(row)];
    ASSERT_EQ(share.rows.owner(row), path.home);
    ASSERT_EQ(share.rows.owns(row), row == next);
    ASSERT_EQ(path.has_copy(rank), row == next_held);
    if (row == next) next = share.rows.next(row + 1);
    if (row != next_held) continue;
    next_held = share.rows.next_held(row + 1, table.rows);
    ASSERT_LT(share.rows.slot(row), share.rows.slots());
    ASSERT_LE(share.rows.extent().begin, row);
    ASSERT_GT(share.rows.extent().end, row);
    ++held;
  }
  EXPECT_EQ(held, share.rows.slots());
}

}  // namespace

TEST(PlacedTables, give_every_row_its_home_and_its_copies) {
  const std::vector<TableSpec> tables{table_of(300, 4), table_of(50, 64), table_of(1, 100)};
  for (const int ranks : {1, 2, 3, 8}) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const PlacementPlan plan = testing::random_plan(tables, ranks, seed);
      const auto placed = PlacedTables::create(plan, tables, ranks);
      ASSERT_TRUE(placed.ok());
      for (int rank = 0; rank < ranks; ++rank) {
        const auto shares = (*placed)->shares(rank);
        for (size_t t = 0; t < tables.size(); ++t) expect_as_planned(shares[t], plan, t, rank);
      }
    }
  }
}

TEST(PlacedTables, a_table_whole_at_one_rank_by_a_plan_takes_no_map) {
  PlacementPlan plan{"test", 3, {}, {}};
  plan.tables.push_back({"t", 9, 4, {}, {{9, plan.path(FetchPath::at(2, 3))}}, {}, {}});
  const std::vector<TableSpec> tables{table_of(9, 4)};
  const auto share = (*PlacedTables::create(plan, tables, 3))->shares(1)[0].rows;
  EXPECT_EQ(share.map(), nullptr);
  EXPECT_EQ(share.slots(), 0);
  EXPECT_EQ(share.owner(5), 2);
}

TEST(PlacedTables, refuse_a_plan_for_something_else) {
  std::vector<TableSpec> tables{table_of(9, 4)};
  const PlacementPlan plan = testing::random_plan(tables, 2, 1);
  const Status other_devices = PlacedTables::create(plan, tables, 1).status();
  EXPECT_EQ(other_devices.message(), "the plan is for 2 devices; there are 1");
  EXPECT_EQ(other_devices.code(), Status::Code::bad_request);
  tables[0].rows = 10;
  const Status other_rows = PlacedTables::create(plan, tables, 2).status();
  EXPECT_EQ(other_rows.message(),
            "table 't': the plan is for 9 rows of 4; the model's has 10 of 4");
}

}  // namespace recmill::table
