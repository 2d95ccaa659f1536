// SPDX-License-Identifier: Apache-2.0
#include "store/sharded/host_rows.h"

#include <gtest/gtest.h>

#include <cstring>

#include "comm/testing/delayed_communicator.h"
#include "comm/threads.h"
#include "placement_plan/testing/random_plan.h"
#include "store/tables/table_rows.h"
#include "table/placed_tables.h"

namespace recmill::store {
namespace {

/// Small tables and some of more than a huge page, of one that the others are not.
ModelSpec some_tables() {
  ModelSpec model;
  for (const int64_t rows : {1, 7, 300, 40'000, 1'000, 60'000}) {
    const auto t = static_cast<int64_t>(model.tables.size());
    model.tables.push_back(
        {.name = "t" + std::to_string(t), .rows = rows, .dim = 16 + t % 3, .optimizer = {}});
    model.tables.back().precision = static_cast<RowPrecision>(t % 3);
  }
  return model;
}

/// What `communicator`'s rank reads of all rows by `host`, against the initial ones.
void expect_all_rows(const ModelSpec& model, std::span<const table::TableShare> shares,
                     const HostRows& host, ThreadPool& pool) {
  for (size_t t = 0; t < shares.size(); ++t) {
    ASSERT_EQ(host.has(t), !shares[t].columns.is_split());
    if (!host.has(t)) continue;
    const TableSpec& spec = model.tables[t];
    const auto whole =
        table::EmbeddingTable::create(spec, 1, table::RowShare(spec.rows, 0, 1), pool);
    const auto placed = table::EmbeddingTable::without_rows(spec, 1, shares[t]);
    std::vector<int64_t> rows, indices;
    for (int64_t row = 0; row < spec.rows; row += 1 + row % 5) rows.push_back(spec.rows - 1 - row);
    std::vector<table::RowPlace> places;
    find_places(rows, placed, places);
    indices.resize(rows.size());
    host.find(t, {rows, places}, indices.data());
    const auto weight_bytes = static_cast<size_t>(spec.dim * kernels::bytes_of(spec.precision));
    for (size_t i = 0; i < rows.size(); ++i) {
      if (host.in_order(t)) {
        ASSERT_EQ(indices[i], rows[i]);
      }
      ASSERT_EQ(
          std::memcmp(host.rows(t).record(indices[i]), whole->rows().record(rows[i]), weight_bytes),
          0)
          << spec.name << " row " << rows[i];
    }
  }
}

TEST(HostRows, every_rank_reads_every_row_where_it_stands) {
  const ModelSpec model = some_tables();
  ThreadPool pool(2);
  for (const int ranks : {2, 3, 8}) {
    for (const uint64_t seed : {1, 2, 3}) {
      const auto placed = table::PlacedTables::create(
          recmill::testing::random_plan(model.tables, ranks, seed), model.tables, ranks);
      ASSERT_TRUE(placed.ok()) << placed.status().message();
      const Status status = run_ranks(ranks, [&](Communicator& inner) -> Status {
        DelayedCommunicator communicator(inner, seed);
        const auto shares = (*placed)->shares(communicator.rank());
        HostRows host(model, shares, communicator);
        RECMILL_ASSIGN_OR_RETURN(auto tables, create_tables(model, 1, shares, pool, &host));
        std::vector<int64_t> notes(ranks);
        for (int64_t round = 0; round < 3; ++round) {
          RECMILL_RETURN_IF_ERROR(host.begin(round * 100 + communicator.rank(), notes));
          for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(notes[rank], round * 100 + rank);
          expect_all_rows(model, shares, host, pool);
          RECMILL_RETURN_IF_ERROR(host.end());
        }
        return {};
      });
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }
}

TEST(HostRows, a_rank_that_fails_while_others_read_ends_them) {
  const ModelSpec model = some_tables();
  const auto placed = table::PlacedTables::create(recmill::testing::random_plan(model.tables, 3, 1),
                                                  model.tables, 3);
  ThreadPool pool(1);
  for (const bool between : {false, true}) {
    const Status status = run_ranks(3, [&](Communicator& communicator) -> Status {
      const auto shares = (*placed)->shares(communicator.rank());
      HostRows host(model, shares, communicator);
      RECMILL_ASSIGN_OR_RETURN(auto tables, create_tables(model, 1, shares, pool, &host));
      std::vector<int64_t> notes(3);
      const bool fails = communicator.rank() == 1;
      if (fails && !between) return Status::Failed("the disk is full");
      RECMILL_RETURN_IF_ERROR(host.begin(0, notes));
      if (fails) return Status::Failed("the disk is full");
      return host.end();
    });
    EXPECT_EQ(status.message(), "rank 1: the disk is full");
  }
}

}  // namespace
}  // namespace recmill::store
