// SPDX-License-Identifier: Apache-2.0
#include "lookahead/cache_planner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "lookahead/testing/streams.h"

namespace recmill::lookahead {
namespace {

using testing::skewed_stream;
using testing::Stream;

constexpr int64_t kSlotBytes = 10, kBatchBytes = 1000;

/// The tables of skewed_stream(); the second one has its own slots where `apart`.
ModelSpec skewed_model(bool apart) {
  ModelSpec model;
  for (const int64_t rows : {5000, 300, 7}) {
    TableSpec& table = model.tables.emplace_back();
    table.name = "t" + std::to_string(model.tables.size() - 1);
    table.rows = rows;
    table.dim = apart && rows == 300 ? 8 : 4;
  }
  return model;
}

struct Planned {
  std::vector<LookaheadStep> steps;
  CacheSize size;
  std::string refusal;
};

Planned plan(const Stream& stream, const CacheOptions& options, bool apart = false) {
  const SlotTables tables(skewed_model(apart));
  CachePlanner planner(tables, std::vector<int64_t>(tables.count(), kSlotBytes), options);
  Planned planned;
  for (size_t seen = 0; seen <= stream.size(); ++seen) {
    if (seen < stream.size()) {
      planner.see(stream[seen], kBatchBytes);
    } else {
      planner.end();
    }
    while (true) {
      const auto step = planner.next();
      if (!step.ok()) planned.refusal = step.status().message();
      if (!step.ok() || *step == nullptr) break;
      planned.steps.push_back(**step);
    }
    if (!planned.refusal.empty()) break;
  }
  planned.size = planner.size();
  return planned;
}

int64_t fetched(const Planned& planned) {
  int64_t rows = 0;
  for (const auto& step : planned.steps) rows += std::ssize(step.fetch);
  return rows;
}

TEST(CachePlanner, decides_as_one_oracle_where_all_tables_share_slots) {
  const Stream stream = skewed_stream();
  for (const int64_t prefetch : {0, 2}) {
    const Planned planned = plan(stream, {.lookahead = 16, .prefetch = prefetch, .cache = 1 << 20});
    std::vector<LookaheadStep> expected;
    ASSERT_TRUE(testing::decide_all(stream, {.lookahead = 16, .prefetch = prefetch},
                                    [&](const LookaheadStep& step) { expected.push_back(step); })
                    .ok());
    EXPECT_EQ(planned.steps, expected);
    EXPECT_EQ(planned.size.slots, std::vector<int64_t>{5307});  // all rows
  }
}

TEST(CachePlanner, lets_each_slot_table_decide_by_itself) {
  const Stream stream = skewed_stream();
  const Planned planned = plan(stream, {.lookahead = 16, .cache = 1 << 20}, /*apart=*/true);
  EXPECT_EQ(fetched(planned), 6135);  // as with one: slots are enough
  ASSERT_EQ(planned.size.slots, (std::vector<int64_t>{5007, 300}));
  for (size_t x = 0; x < stream.size(); ++x) {
    const LookaheadStep& step = planned.steps[x];
    EXPECT_TRUE(std::ranges::is_sorted(step.fetch));
    EXPECT_TRUE(std::ranges::is_sorted(step.evict));
    ASSERT_EQ(step.uses.size(), stream[x].size());
    for (size_t i = 0; i < step.uses.size(); ++i) EXPECT_EQ(step.uses[i].row, stream[x][i]);
  }
}

TEST(CachePlanner, divides_bytes_by_those_of_the_first_windows_rows) {
  const Stream stream{{0, 1, 2, 5000}, {3, 5001}, {0}};
  const Planned planned = plan(stream, {.lookahead = 1, .cache = 60}, /*apart=*/true);
  EXPECT_EQ(planned.size.slots, (std::vector<int64_t>{4, 2}));
}

TEST(CachePlanner, chooses_the_largest_window_that_fits) {
  const Stream stream = skewed_stream();
  // 6 batches, those of 4 steps ahead, and the slots of 6 steps' rows.
  std::vector<int64_t> rows;
  for (int x = 0; x < 6; ++x) rows.insert(rows.end(), stream[x].begin(), stream[x].end());
  std::ranges::sort(rows);
  rows.erase(std::ranges::unique(rows).begin(), rows.end());
  const int64_t needed = 10 * kBatchBytes + std::ssize(rows) * kSlotBytes;
  const Planned enough = plan(stream, {.memory = needed});
  EXPECT_EQ(enough.size.lookahead, 5);
  EXPECT_EQ(enough.size.prefetch, 4);
  EXPECT_EQ(enough.size.slots, std::vector<int64_t>{std::ssize(rows)});
  EXPECT_EQ(plan(stream, {.memory = needed - 1}).size.lookahead, 4);
  EXPECT_EQ(plan(stream, {.memory = 1 << 30}).size.lookahead, 200);
  EXPECT_EQ(plan(stream, {.memory = 10}).refusal,
            fmt::format("lookahead.cache: one batch and the rows that it looks up need {} bytes, "
                        "and 10 are free",
                        kBatchBytes + std::ssize(stream[0]) * kSlotBytes));
}

TEST(CachePlanner, names_the_bytes_that_would_have_been_enough) {
  const Stream stream = skewed_stream();
  // 375 slots are the least (of all steps).
  const CacheOptions least{.lookahead = 59, .prefetch = 0, .cache = 375 * kSlotBytes};
  EXPECT_EQ(plan(stream, least).refusal, "");
  EXPECT_EQ(fetched(plan(stream, least)), 14199);
  CacheOptions less = least;
  *less.cache -= 1;
  EXPECT_NE(plan(stream, less).refusal.find("375 rows have to be in slots for step "),
            std::string::npos);
  EXPECT_NE(plan(stream, less).refusal.find("there are 374 slots; needs at least 3750 bytes"),
            std::string::npos)
      << plan(stream, less).refusal;
  // However few there are, the first refusal names what is enough for all steps that are known.
  *less.cache = kSlotBytes;
  EXPECT_NE(plan(stream, less).refusal.find("there are 1 slots; needs at least 3750 bytes"),
            std::string::npos)
      << plan(stream, less).refusal;
}

TEST(CachePlanner, holds_no_more_than_it_says) {
  Stream no_repeats;  // of table 0
  for (int64_t step = 0; step < 50; ++step)
    for (int64_t row = 0; row < 100; ++row)
      (row == 0 ? no_repeats.emplace_back() : no_repeats.back()).push_back(step * 100 + row);
  const SlotTables tables(skewed_model(/*apart=*/true));
  for (const Stream& stream : {no_repeats, skewed_stream()}) {
    for (const auto& [lookahead, prefetch, cache] : {std::tuple{0, 0, 1 << 20},
                                                     {0, 4, 1 << 20},
                                                     {1, 4, 9000},
                                                     {7, 2, 1 << 20},
                                                     {30, 4, 1 << 20}}) {
      size_t step_rows = 0;
      for (const auto& rows : stream) step_rows = std::max(step_rows, rows.size());
      const int64_t window_rows =
          std::min(tables.rows(), (lookahead + 2) * static_cast<int64_t>(step_rows));
      const int64_t most = CachePlanner::most_bytes(lookahead, prefetch,
                                                    static_cast<int64_t>(step_rows), window_rows);
      CachePlanner planner(tables, std::vector<int64_t>(tables.count(), kSlotBytes),
                           {.lookahead = lookahead, .prefetch = prefetch, .cache = cache});
      // Each of two oracles begins with 1024 places.
      constexpr int64_t kFromTheBeginning = 2 * 1024 * 8 + 512;
      for (const auto& rows : stream) {
        planner.see(rows, kBatchBytes);
        ASSERT_TRUE(planner.next().ok());
        EXPECT_LE(planner.bytes(), most + kFromTheBeginning) << lookahead << " " << prefetch;
      }
      EXPECT_GT(planner.bytes(), 0);
    }
  }
}

TEST(CachePlanner, decides_as_without_a_limit_where_every_row_has_a_slot) {
  const auto all = plan(skewed_stream(), {.lookahead = 9, .prefetch = 2, .cache = 1 << 20});
  EXPECT_EQ(all.size.slots[0], 5307);
  Oracle oracle({.lookahead = 9, .prefetch = 2, .slots = 5307});
  for (const auto& rows : skewed_stream()) oracle.see(rows);
  oracle.end();
  for (const LookaheadStep& step : all.steps) EXPECT_EQ(step, *oracle.decide());
}

}  // namespace
}  // namespace recmill::lookahead
