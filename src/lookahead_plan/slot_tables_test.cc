// SPDX-License-Identifier: Apache-2.0
#include "lookahead_plan/slot_tables.h"

#include <gtest/gtest.h>

namespace recmill {
namespace {

TableSpec table(std::string name, int64_t rows, int64_t dim) {
  TableSpec spec;
  spec.name = std::move(name);
  spec.rows = rows;
  spec.dim = dim;
  return spec;
}

TEST(SlotTables, numbers_rows_table_by_table_and_names_them) {
  ModelSpec model;
  model.tables = {table("a", 5, 8), table("b", 1, 4), table("c", 3, 8)};
  const SlotTables tables(model);
  EXPECT_EQ(tables.rows(), 9);
  EXPECT_EQ(tables.begin(2), 6);
  EXPECT_EQ(tables.table_of(4), 0);
  EXPECT_EQ(tables.table_of(5), 1);
  EXPECT_EQ(tables.name_of(8), "c:2");
}

TEST(SlotTables, share_slots_where_records_and_optimizers_are_the_same) {
  ModelSpec model;
  model.tables = {table("a", 5, 8), table("b", 1, 4), table("c", 3, 8)};
  for (int i = 0; i < 4; ++i) model.tables.push_back(table("d" + std::to_string(i), 2, 8));
  model.tables[3].precision = RowPrecision::bfloat16;
  model.tables[4].optimizer.kind = OptimizerKind::adam;
  model.tables[5].optimizer.learning_rate *= 2;
  model.tables[6].frozen = true;
  const SlotTables tables(model);
  EXPECT_EQ(tables.count(), 6);
  EXPECT_EQ(tables.slot_table_of(2), 0);
  EXPECT_EQ(tables.rows_of(0), 8);
  EXPECT_EQ(tables.slot_table_of(6), 5);
  EXPECT_EQ(tables.first_table(5), 6);
  EXPECT_TRUE(tables.is_frozen(tables.begin(6)));
  EXPECT_FALSE(tables.is_frozen(tables.begin(6) - 1));
}

}  // namespace
}  // namespace recmill
