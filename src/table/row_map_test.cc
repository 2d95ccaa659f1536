// SPDX-License-Identifier: Apache-2.0
#include "table/row_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "placement_plan/testing/random_plan.h"

namespace recmill::table {
namespace {

TableSpec table_of(int64_t rows) {
  TableSpec spec;
  spec.name = "t";
  spec.rows = rows;
  spec.dim = 4;
  return spec;
}

std::vector<FetchPath> paths_of(const TablePlacement& table, const PlacementPlan& plan) {
  std::vector<FetchPath> paths;
  PathCursor cursor(table);
  for (int64_t row = 0; row < table.rows; ++row) paths.push_back(plan.paths[cursor.at(row)]);
  return paths;
}

std::shared_ptr<const RowMap> map_of(const PlacementPlan& plan) {
  auto map = RowMap::create(plan.tables[0], plan.paths, plan.devices);
  EXPECT_TRUE(map.ok()) << map.status().message();
  return *map;
}

// Every row at the device that its path says, at its home and where each device fetches it; every
// slot of a device filled once.
void expect_places(const RowMap& map, const std::vector<FetchPath>& paths) {
  std::vector<int64_t> rows(paths.size());
  for (size_t row = 0; row < paths.size(); ++row) rows[row] = static_cast<int64_t>(row);
  std::reverse(rows.begin(), rows.end());
  std::vector<RowPlace> places(rows.size());
  map.places(rows, places.data());
  std::vector<std::set<int64_t>> slots(map.devices());
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t row = rows[i];
    const FetchPath& path = paths[row];
    ASSERT_EQ(places[i], map.place(row)) << row;
    ASSERT_EQ(map.home(places[i]).device, path.home) << row;
    ASSERT_EQ(map.is_copied(places[i]), path.copies() > 1) << row;
    for (int device = 0; device < map.devices(); ++device) {
      const RowMap::Address source = map.source(places[i], device);
      ASSERT_EQ(source.device, path.from[device]) << row;
      ASSERT_EQ(source.slot, map.slot(places[i], source.device)) << row;
      ASSERT_EQ(map.has_copy(places[i], device), path.has_copy(device)) << row;
      if (!path.has_copy(device)) continue;
      const int64_t slot = map.slot(places[i], device);
      ASSERT_TRUE(slot >= 0 && slot < map.slots(device)) << row;
      ASSERT_TRUE(slots[device].insert(slot).second) << row;
      ASSERT_TRUE(map.extent(device).begin <= row && row < map.extent(device).end) << row;
    }
  }
  for (int device = 0; device < map.devices(); ++device)
    ASSERT_EQ(static_cast<int64_t>(slots[device].size()), map.slots(device));
}

template <typename Next, typename Wanted>
void expect_next(const std::vector<FetchPath>& paths, const Next& next, const Wanted& wanted) {
  std::vector<int64_t> expected, found;
  const auto rows = static_cast<int64_t>(paths.size());
  for (int64_t row = 0; row < rows; ++row)
    if (wanted(paths[row])) expected.push_back(row);
  for (int64_t row = next(0); row < rows; row = next(row + 1)) found.push_back(row);
  ASSERT_EQ(found, expected);
}

void expect_all(const RowMap& map, const std::vector<FetchPath>& paths) {
  expect_places(map, paths);
  for (int device = 0; device < map.devices(); ++device) {
    expect_next(
        paths, [&](int64_t row) { return map.next_owned(row, map.rows(), device); },
        [&](const FetchPath& path) { return path.home == device; });
    expect_next(
        paths, [&](int64_t row) { return map.next_held(row, map.rows(), device); },
        [&](const FetchPath& path) { return path.has_copy(device); });
  }
  expect_next(
      paths, [&](int64_t row) { return map.next_copied(row, map.rows()); },
      [](const FetchPath& path) { return path.copies() > 1; });
  std::set<int64_t> copied;
  for (size_t row = 0; row < paths.size(); ++row) {
    const RowPlace place = map.place(static_cast<int64_t>(row));
    if (map.is_copied(place)) copied.insert(map.copied_number(place));
  }
  EXPECT_EQ(static_cast<int64_t>(copied.size()), map.copied_rows());
  EXPECT_TRUE(copied.empty() || (*copied.begin() == 0 && *copied.rbegin() < map.copied_rows()));
}

}  // namespace

TEST(RowMap, says_of_every_row_what_random_plans_say) {
  int with_idle = 0;
  for (const int64_t rows : {1, 2, 7, 448, 449, 3000}) {
    for (int devices = 1; devices <= 8; ++devices) {
      for (uint64_t seed = 0; seed < 12; ++seed) {
        const std::vector<TableSpec> tables{table_of(rows)};
        const PlacementPlan plan = testing::random_plan(tables, devices, seed * 100 + rows);
        ASSERT_TRUE(check_plan(plan, tables, devices).ok());
        const auto map = map_of(plan);
        ASSERT_NO_FATAL_FAILURE(expect_all(*map, paths_of(plan.tables[0], plan)))
            << rows << " rows, " << devices << " devices, seed " << seed;
        for (int device = 0; device < devices; ++device) with_idle += map->slots(device) == 0;
      }
    }
  }
  EXPECT_GT(with_idle, 100);
}

TEST(RowMap, tells_as_many_ways_apart_as_a_plan_has) {
  PlacementPlan plan{"test", 8, {}, {}};
  TablePlacement table{"t", 90000, 4, {}, {{90000, plan.path(FetchPath::at(0, 8))}}, {}, {}};
  const Random random(1, Purpose::test);
  for (int64_t row = 0; row < table.rows; ++row) {  // some 200 paths, then one after the other
    FetchPath path = FetchPath::everywhere(static_cast<int>(random.below(8, row, 0)), 8);
    const auto away = static_cast<int>(random.below(8, row, 1));
    const auto from = static_cast<int>(random.below(8, row, 2));
    if (away != path.home && from != away) path.from[away] = from;
    if (random.below(3, row, 3) == 0) continue;
    table.listed_rows.push_back(row);
    table.listed_paths.push_back(plan.path(path));
  }
  EXPECT_GT(plan.paths.size(), 64u);
  plan.tables.push_back(table);
  expect_all(*map_of(plan), paths_of(plan.tables[0], plan));
}

TEST(RowMap, keeps_rows_with_a_copy_everywhere_in_the_same_slots_in_front) {
  PlacementPlan plan{"test", 3, {}, {}};
  const int all = plan.path(FetchPath::everywhere(1, 3)), at0 = plan.path(FetchPath::at(0, 3));
  plan.tables.push_back({"t", 100, 4, {}, {{50, at0}, {100, all}}, {3, 70}, {all, at0}});
  const auto map = map_of(plan);
  EXPECT_EQ(map->slots(0), 100);
  EXPECT_EQ(map->slots(2), 50);
  for (const int64_t row : {3, 51, 99}) {
    for (const int device : {0, 1, 2}) {
      EXPECT_EQ(map->slot(map->place(row), device), map->slot(map->place(row), 0));
      EXPECT_LT(map->slot(map->place(row), device), 50);
    }
  }
  EXPECT_EQ(map->extent(1), (RowRange{3, 100}));
}

TEST(RowMap, takes_nothing_for_a_whole_table_and_a_half_byte_a_row_with_a_sixth_of_them_listed) {
  PlacementPlan plan{"test", 8, {}, {}};
  TablePlacement table{"t", 6000000, 4, {}, {}, {}, {}};
  for (int device = 0; device < 8; ++device)
    table.runs.push_back({table.rows * (device + 1) / 8, plan.path(FetchPath::at(device, 8))});
  plan.tables.push_back(table);
  EXPECT_LT(map_of(plan)->bytes(), 2000);
  EXPECT_EQ(map_of(plan)->whole_at(), -1);
  const int all = plan.path(FetchPath::everywhere(3, 8));
  for (int64_t row = 0; row < table.rows; row += 6) {
    plan.tables[0].listed_rows.push_back(row);
    plan.tables[0].listed_paths.push_back(row % 5 == 0 ? all : static_cast<int>(row % 8));
  }
  const auto map = map_of(plan);
  EXPECT_LT(static_cast<double>(map->bytes()) / static_cast<double>(table.rows), 0.5);
  plan.tables[0] = {"t", 10, 4, {}, {{4, 2}, {10, 2}}, {7}, {2}};
  EXPECT_EQ(map_of(plan)->whole_at(), 2);
}

TEST(RowMap, takes_rows_of_runs_that_are_too_short_for_listed_ones) {
  PlacementPlan plan{"test", 2, {}, {}};
  TablePlacement table{"t", 1000000, 4, {}, {}, {}, {}};
  const int at[] = {plan.path(FetchPath::at(0, 2)), plan.path(FetchPath::at(1, 2))};
  for (int64_t end = 1; end <= table.rows; ++end) table.runs.push_back({end, at[end % 2]});
  plan.tables.push_back(table);
  const auto map = map_of(plan);
  EXPECT_LT(static_cast<double>(map->bytes()) / static_cast<double>(table.rows), 1.2);
  EXPECT_EQ(map->home(map->place(999998)).device, 1);
  EXPECT_EQ(map->home(map->place(999999)).device, 0);
}

}  // namespace recmill::table
