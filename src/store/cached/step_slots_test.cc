// SPDX-License-Identifier: Apache-2.0
#include "store/cached/step_slots.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

namespace recmill::store {
namespace {

TEST(StepSlots, are_those_of_the_last_step_by_table_and_row) {
  ModelSpec model;
  for (const int64_t rows : {1, 900, 40, 1 << 16}) model.tables.emplace_back().rows = rows;
  const SlotTables tables(model);
  StepSlots slots(model, tables);
  std::mt19937_64 random(7);
  for (int round = 0; round < 100; ++round) {
    std::map<int64_t, int32_t> expected;
    for (auto uses = random() % 200; uses > 0; --uses)
      expected[static_cast<int64_t>(
          random() % static_cast<uint64_t>(random() % 8 == 0 ? tables.rows() : 1000))] =
          static_cast<int32_t>(random() % 1000);
    std::vector<RowInSlot> uses;
    for (const auto& [row, slot] : expected) uses.push_back({row, slot});
    for (int t = 0; t < tables.tables(); ++t) {
      slots.set(t, uses);
      for (int64_t row = 0; row < model.tables[t].rows; ++row) {
        int64_t slot = 0;
        const auto found = expected.find(tables.begin(t) + row);
        const bool there = found != expected.end();
        EXPECT_EQ(slots.find(t, {&row, 1}, {&slot, 1}), there ? StepSlots::kNone : row);
        EXPECT_EQ(slot, there ? found->second : StepSlots::kNone);
      }
    }
  }
}

TEST(StepSlots, name_a_row_that_has_none) {
  ModelSpec model;
  model.tables.emplace_back().rows = 10;
  const SlotTables tables(model);
  StepSlots slots(model, tables);
  const std::vector<RowInSlot> uses{{2, 5}, {9, 0}};
  slots.set(0, uses);
  std::vector<int64_t> found(4);
  EXPECT_EQ(slots.find(0, std::vector<int64_t>{9, 2, 2, 9}, found), StepSlots::kNone);
  EXPECT_EQ(found, (std::vector<int64_t>{0, 5, 5, 0}));
  for (const int64_t row : {0, 3, 8}) {
    EXPECT_EQ(slots.find(0, std::vector<int64_t>{9, row, 2}, std::span(found).first(3)), row);
    EXPECT_EQ(found[1], StepSlots::kNone);
  }
}

}  // namespace
}  // namespace recmill::store
