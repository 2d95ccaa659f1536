// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/rows_by_rank.h"

#include <gtest/gtest.h>

#include "placement_plan/testing/random_plan.h"
#include "table/placed_tables.h"

namespace recmill::store {
namespace {

TEST(RowsByRank, names_every_row_once_at_its_owner) {
  for (int ranks : {1, 3, 8}) {
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < 100; row += 1 + row % 3) rows.push_back(99 - row);
    TableSpec spec;
    spec.rows = 100;
    spec.dim = 1;
    ThreadPool pool(1);
    RowsByRank by_owner;
    by_owner.to_sources(
        {rows, {}}, *table::EmbeddingTable::create(spec, 1, table::RowShare(100, 0, ranks), pool));
    ASSERT_EQ(by_owner.of.back().end, static_cast<int64_t>(rows.size()));
    std::vector<int> seen(rows.size());
    for (int rank = 0; rank < ranks; ++rank) {
      const table::RowShare share(100, rank, ranks);
      for (int64_t i = by_owner.of[rank].begin; i < by_owner.of[rank].end; ++i) {
        const int64_t index = by_owner.order[i];
        ++seen[index];
        EXPECT_EQ(by_owner.place[index], i);
        EXPECT_EQ(share.owner(rows[index]), rank);
        EXPECT_EQ(share.row(by_owner.slots[i]), rows[index]);
      }
    }
    EXPECT_EQ(seen, std::vector<int>(rows.size(), 1));
  }
}

/// The rows at each rank.
std::vector<std::vector<int64_t>> at_ranks(const RowsByRank& by_rank,
                                           std::span<const int64_t> rows) {
  std::vector<std::vector<int64_t>> at(by_rank.of.size());
  for (size_t rank = 0; rank < at.size(); ++rank)
    for (int64_t i = by_rank.of[rank].begin; i < by_rank.of[rank].end; ++i)
      at[rank].push_back(rows[by_rank.order[i]]);
  return at;
}

TEST(RowsByRank, gives_rows_with_copies_to_those_who_get_them) {
  using Rows = std::vector<std::vector<int64_t>>;
  PlacementPlan plan{"test", 3, {}, {}};
  const int at0 = plan.path(FetchPath::at(0, 3)), at2 = plan.path(FetchPath::at(2, 3));
  const int both = plan.path({1, {1, 1, 2}});  // at devices 1 and 2
  plan.tables.push_back({"t", 30, 1, {}, {{30, at0}}, {4, 7, 9}, {at2, both, both}});
  TableSpec spec;
  spec.name = "t", spec.rows = 30, spec.dim = 1;
  ThreadPool pool(1);
  const auto placed = table::PlacedTables::create(plan, std::span(&spec, 1), 3);
  const auto shares = (*placed)->shares(0);
  const auto table = table::EmbeddingTable::create(spec, 1, shares[0], pool);
  const std::vector<int64_t> distinct{4, 7, 9, 20}, indices{2, 0, 3, 1, 0};
  std::vector<table::RowPlace> places;
  find_places(distinct, *table, places);
  const NamedRows named{distinct, places, indices};
  const std::vector<int64_t> rows{9, 4, 20, 7, 4};
  RowsByRank by_rank;
  by_rank.to_sources(named, *table);
  EXPECT_EQ(at_ranks(by_rank, rows), (Rows{{20}, {9, 7}, {4, 4}}));
  by_rank.to_recipients(named, *table, {true, Recipients::home});
  EXPECT_EQ(at_ranks(by_rank, rows), (Rows{{20}, {9, 7}, {4, 4}}));
  by_rank.to_recipients(named, *table, {true, Recipients::nobody});
  EXPECT_EQ(at_ranks(by_rank, rows), (Rows{{20}, {}, {4, 4}}));
  by_rank.to_recipients(named, *table, {false, Recipients::holders});
  EXPECT_EQ(at_ranks(by_rank, rows), (Rows{{}, {9, 7}, {9, 7}}));
  by_rank.to_recipients(named, *table, {true, Recipients::holders});
  EXPECT_EQ(at_ranks(by_rank, rows), (Rows{{20}, {9, 7}, {9, 4, 7, 4}}));
  by_rank.to_recipients({distinct, places}, *table, {true, Recipients::home});
  EXPECT_EQ(at_ranks(by_rank, distinct), (Rows{{20}, {7, 9}, {4}}));
}

}  // namespace
}  // namespace recmill::store
