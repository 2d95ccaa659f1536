// SPDX-License-Identifier: Apache-2.0
#include "table/embedding_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.h"
#include "base/random.h"
#include "kernels/row_values.h"
#include "placement_plan/testing/random_plan.h"
#include "table/placed_tables.h"
#include "table/table_shares.h"

namespace recmill::table {
namespace {

TableSpec spec_of(OptimizerKind kind, int64_t rows = 100, int64_t dim = 5) {
  TableSpec spec;
  spec.name = "C7";
  spec.rows = rows;
  spec.dim = dim;
  spec.optimizer.kind = kind;
  spec.optimizer.initial_accumulator = 0.25;
  return spec;
}

EmbeddingTable make(const TableSpec& spec, int rank = 0, int ranks = 1, int threads = 2) {
  ThreadPool pool(threads);
  auto table = EmbeddingTable::create(spec, 42, RowShare(spec.rows, rank, ranks), pool);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return *std::move(table);
}

TEST(EmbeddingTable, initial_rows_are_a_function_of_seed_name_row_and_element) {
  const auto spec = spec_of(OptimizerKind::sgd);
  const auto table = make(spec);
  const Random random(42, Purpose::initial_row, hash_bytes("C7"));
  for (int64_t row = 0; row < spec.rows; ++row) {
    for (int64_t e = 0; e < spec.dim; ++e) {
      const float expected = (random.uniform(row, e) * 2.0f - 1.0f) * 0.1f;
      ASSERT_EQ(kernels::weight_value(table.rows(), row, e), expected);
    }
  }
}

TEST(EmbeddingTable, by_a_plan_holds_the_rows_of_the_whole_and_copies_of_them) {
  const auto spec = spec_of(OptimizerKind::adam, 700);
  const auto whole = make(spec);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const PlacementPlan plan = testing::random_plan(std::span(&spec, 1), 4, seed);
    const auto placed = PlacedTables::create(plan, std::span(&spec, 1), 4);
    for (int rank = 0; rank < 4; ++rank) {
      ThreadPool pool(2);
      const auto share = (*placed)->shares(rank)[0];
      const auto part = EmbeddingTable::create(spec, 42, share, pool);
      ASSERT_TRUE(part.ok());
      const RowShare& rows = part->share();
      for (int64_t row = rows.next_held(0, 700); row < 700; row = rows.next_held(row + 1, 700)) {
        std::vector<float> a(spec.dim), b(spec.dim);
        part->read(rows.slot(row), 1, a, {});
        whole.read(row, 1, b, {});
        ASSERT_EQ(a, b);
      }
    }
  }
}

TEST(EmbeddingTable, shares_hold_the_rows_of_the_whole) {
  for (auto precision : {RowPrecision::float32, RowPrecision::bfloat16, RowPrecision::float16}) {
    auto spec = spec_of(OptimizerKind::adam);
    spec.precision = precision;
    const auto whole = make(spec);
    for (int rank = 0; rank < 3; ++rank) {
      const auto part = make(spec, rank, 3, 1);
      for (int64_t slot = 0; slot < part.share().slots(); ++slot) {
        std::vector<float> a(spec.dim), b(spec.dim);
        part.read(slot, 1, a, {});
        whole.read(part.share().row(slot), 1, b, {});
        ASSERT_EQ(a, b);
      }
    }
  }
}

TEST(EmbeddingTable, pieces_of_columns_hold_those_of_the_whole) {
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::rowwise_adagrad}) {
    auto spec = spec_of(kind, 20, 40);
    spec.sharding = Sharding::column;
    const auto whole = make(spec);
    for (int rank = 0; rank < 3; ++rank) {
      ThreadPool pool(1);
      const auto piece = *EmbeddingTable::create(spec, 42, shares_of({&spec, 1}, rank, 3)[0], pool);
      const ColumnRange columns = piece.columns();
      ASSERT_EQ(columns, (ColumnRange{rank * 16, rank == 2 ? 8 : 16}));
      for (int64_t row = 0; row < spec.rows; ++row) {
        for (int64_t e = 0; e < columns.count; ++e) {
          ASSERT_EQ(kernels::weight_value(piece.rows(), row, e),
                    kernels::weight_value(whole.rows(), row, columns.first + e));
        }
      }
      const bool by_row = kind == OptimizerKind::rowwise_adagrad;
      for (const auto& column : piece.state()) EXPECT_EQ(column.width, by_row ? 1 : columns.count);
      EXPECT_EQ(EmbeddingTable::bytes(spec, shares_of({&spec, 1}, rank, 3)[0]),
                20 * (columns.count * (by_row ? 4 : 12) + (by_row ? 4 : 0)));
    }
  }
}

TEST(EmbeddingTable, a_share_of_a_table_beyond_32_bits_has_its_rows) {
  const auto spec = spec_of(OptimizerKind::rowwise_adagrad, (int64_t{1} << 34) + 1, 3);
  const auto part = make(spec, 7, 1 << 22);
  ASSERT_GT(part.share().slots(), 4000);
  const Random random(42, Purpose::initial_row, hash_bytes("C7"));
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.rows)));
  int64_t beyond = 0;
  for (int64_t slot = 0; slot < part.share().slots(); ++slot) {
    const int64_t row = part.share().row(slot);
    beyond += row >> 32 != 0;
    ASSERT_EQ(kernels::weight_value(part.rows(), slot, 2),
              (random.uniform(row, 2) * 2.0f - 1.0f) * scale);
  }
  EXPECT_GT(beyond, 1000);
}

TEST(EmbeddingTable, state_starts_where_its_optimizer_says_and_need_counts_every_byte) {
  struct Expectation {
    OptimizerKind kind;
    RowState state;
    int64_t state_bytes;
    BiasCorrection correction = BiasCorrection::global;
  };
  const Expectation expectations[] = {
      {OptimizerKind::sgd, {}, 0},
      {OptimizerKind::adagrad, {{"sum_of_squares", 5, 0.25f}}, 2000},
      {OptimizerKind::rowwise_adagrad, {{"sum_of_squares", 1, 0.25f}}, 400},
      {OptimizerKind::adam, {{"first_moment", 5, 0.0f}, {"second_moment", 5, 0.0f}}, 4000},
      {OptimizerKind::ftrl, {{"sum_of_squares", 5, 0.25f}, {"linear", 5, 0.0f}}, 4000},
      {OptimizerKind::adam,
       {{"first_moment", 5, 0.0f}, {"second_moment", 5, 0.0f}, {"updates", 1, 0.0f}},
       4400,
       BiasCorrection::row},
  };
  for (const auto& [kind, state, state_bytes, correction] : expectations) {
    auto spec = spec_of(kind);
    spec.optimizer.correction = correction;
    const auto table = make(spec);
    ASSERT_EQ(table.state(), state);
    std::vector<std::vector<float>> columns;
    columns.reserve(state.size());
    std::vector<std::span<float>> views;
    for (const auto& column : state) columns.emplace_back(spec.rows * column.width, -1.0f);
    for (auto& column : columns) views.emplace_back(column);
    std::vector<float> weights(spec.rows * spec.dim);
    table.read(0, spec.rows, weights, views);
    for (size_t c = 0; c < state.size(); ++c) {
      for (float value : columns[c]) ASSERT_EQ(value, state[c].initial);
    }
    MemoryLedger ledger;
    EmbeddingTable::need(spec, table.share(), 3, ledger);
    EXPECT_EQ(ledger.total(3), spec.rows * spec.dim * 4 + state_bytes);
  }
}

TEST(EmbeddingTable, what_was_read_is_written_back_bit_for_bit) {
  for (auto precision : {RowPrecision::float32, RowPrecision::bfloat16, RowPrecision::float16}) {
    for (auto kind : {OptimizerKind::sgd, OptimizerKind::rowwise_adagrad, OptimizerKind::ftrl,
                      OptimizerKind::adam}) {
      auto spec = spec_of(kind, 9, 3);
      spec.precision = precision;
      spec.optimizer.correction = BiasCorrection::row;
      const auto from = make(spec);
      spec.name = "other";
      auto to = make(spec);
      const RowState state = row_state(spec);
      std::vector<std::vector<float>> columns;
      std::vector<std::span<float>> views;
      std::vector<std::span<const float>> inputs;
      for (const auto& column : state) columns.emplace_back(9 * column.width);
      for (auto& column : columns) {
        views.emplace_back(column);
        inputs.emplace_back(column);
      }
      std::vector<float> weights(27), again(27);
      from.read(0, 9, weights, views);
      to.read(0, 9, again, {});
      ASSERT_NE(weights, again);
      to.write(0, 9, weights, inputs);
      to.read(0, 9, again, views);
      EXPECT_EQ(weights, again);
    }
  }
}

TEST(EmbeddingTable, a_frozen_table_keeps_no_state) {
  auto spec = spec_of(OptimizerKind::adam);
  spec.frozen = true;
  EXPECT_TRUE(make(spec).state().empty());
  EXPECT_EQ(make(spec).rows().stride, 20);
}

TEST(EmbeddingTable, refuses_impossible_sizes_by_name) {
  ThreadPool pool(1);
  const auto none =
      EmbeddingTable::create(spec_of(OptimizerKind::sgd, 0), 1, RowShare(0, 0, 1), pool);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("table C7"), std::string::npos);
  const int64_t rows = int64_t{1} << 50;
  const auto huge =
      EmbeddingTable::create(spec_of(OptimizerKind::sgd, rows), 1, RowShare(rows, 0, 1), pool);
  ASSERT_FALSE(huge.ok());
  EXPECT_NE(huge.status().message().find("table C7"), std::string::npos);
}

}  // namespace
}  // namespace recmill::table
