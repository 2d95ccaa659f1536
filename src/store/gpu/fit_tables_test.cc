// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/fit_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace recmill::store {
namespace {

constexpr auto kDevice = GpuMemory::device, kHost = GpuMemory::host;
using Places = std::vector<GpuMemory>;

double device_traffic(std::span<const TableTraffic> tables, const Places& places) {
  double traffic = 0;
  for (size_t t = 0; t < tables.size(); ++t)
    traffic += places[t] == kDevice ? tables[t].bytes_a_sample : 0;
  return traffic;
}

int64_t device_bytes(std::span<const TableTraffic> tables, const Places& places) {
  int64_t bytes = 0;
  for (size_t t = 0; t < tables.size(); ++t) bytes += places[t] == kDevice ? tables[t].bytes : 0;
  return bytes;
}

// The most of all choices.
double most_traffic(std::span<const TableTraffic> tables, int64_t free) {
  double most = 0;
  for (unsigned choice = 0; choice < 1u << tables.size(); ++choice) {
    Places places(tables.size(), kHost);
    for (size_t t = 0; t < tables.size(); ++t)
      if ((choice >> t & 1) != 0) places[t] = kDevice;
    if (device_bytes(tables, places) <= free) most = std::max(most, device_traffic(tables, places));
  }
  return most;
}

TEST(FitTables, TakesTheBusiestBytesFirst) {
  const std::vector<TableTraffic> tables{{100, 1}, {10, 1}, {1000, 50}, {10, 1}};
  EXPECT_EQ(fit_tables(tables, 2000), Places(4, kDevice));
  EXPECT_EQ(fit_tables(tables, 1010), (Places{kHost, kDevice, kDevice, kHost}));
  EXPECT_EQ(fit_tables(tables, 115), (Places{kHost, kDevice, kHost, kDevice}));
  EXPECT_EQ(fit_tables(tables, 9), Places(4, kHost));
  EXPECT_EQ(fit_tables(tables, -1), Places(4, kHost));
  EXPECT_EQ(fit_tables({}, 10), Places());
}

TEST(FitTables, TakesTablesThatNobodyLooksUpWhereThereIsRoom) {
  const std::vector<TableTraffic> tables{{100, 0}, {100, 1}};
  EXPECT_EQ(fit_tables(tables, 200), Places(2, kDevice));
  EXPECT_EQ(fit_tables(tables, 100), (Places{kHost, kDevice}));
}

TEST(FitTables, IsAsGoodAsAnyOfAllChoices) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<TableTraffic> tables(1 + random() % 10);
    int64_t all = 0;
    for (TableTraffic& table : tables) {
      table = {static_cast<int64_t>(1 + random() % 50), static_cast<double>(random() % 20)};
      all += table.bytes;
    }
    const int64_t free = static_cast<int64_t>(random() % static_cast<uint64_t>(all + 10));
    const Places places = fit_tables(tables, free);
    EXPECT_LE(device_bytes(tables, places), free);
    EXPECT_EQ(device_traffic(tables, places), most_traffic(tables, free)) << trial;
  }
}

TEST(FitTables, GivesAnAnswerForManyTablesThatAreNearlyAlike) {
  std::mt19937_64 random(2);
  std::vector<TableTraffic> tables(2000);
  for (TableTraffic& table : tables)
    table = {static_cast<int64_t>(1000000 + random() % 1000), 10.0 + 1e-5 * (random() % 1000)};
  const Places places = fit_tables(tables, 1000 * 1000500);
  EXPECT_LE(device_bytes(tables, places), 1000 * 1000500);
  EXPECT_GE(std::ranges::count(places, kDevice), 999);
}

}  // namespace
}  // namespace recmill::store
