// SPDX-License-Identifier: Apache-2.0
#include "verify/plain_rows.h"

#include <gmock/gmock.h>

#include "comm/threads.h"
#include "table/embedding_table.h"

namespace recmill::train {
namespace {

constexpr int64_t kRows[] = {7, 20};
constexpr int64_t kDim = 3;

/// Two tables with state by element.
ModelSpec two_tables() {
  ModelSpec spec;
  for (const int64_t rows : kRows) {
    TableSpec table;
    table.name = "t" + std::to_string(spec.tables.size());
    table.rows = rows;
    table.dim = kDim;
    table.optimizer.kind = OptimizerKind::adagrad;
    spec.tables.push_back(table);
  }
  return spec;
}

float element(int table, int64_t row, int64_t at, bool state) {
  return static_cast<float>(table * 1000 + row * 10 + at) + (state ? 0.5f : 0.0f);
}

/// Some columns of some rows of a table, with one element changed if it is among them.
struct Rows {
  Rows(int table, std::vector<int64_t> of, int64_t changed, ColumnRange columns = {0, kDim})
      : rows(std::move(of)) {
    for (const int64_t row : rows) {
      for (int64_t at = columns.first; at < columns.end(); ++at) {
        weights.push_back(element(table, row, at, false));
        state.push_back(element(table, row, at, true) + (row == changed && at == 1 ? 1.0f : 0.0f));
      }
    }
    column = state;
    block = {.table = table,
             .first = 0,
             .count = static_cast<int64_t>(rows.size()),
             .weights = weights,
             .state = std::span(&column, 1),
             .listed = rows,
             .columns = columns};
  }
  std::vector<int64_t> rows;
  std::vector<float> weights, state;
  std::span<const float> column;
  store::RowBlock block;
};

/// Each of `ranks` ranks compares the rows r with r % ranks == rank, those of a table in two
/// blocks; of the last table `left_out` not, and with row `changed` otherwise than it was kept.
Status compare(int ranks, int64_t left_out, int64_t changed) {
  const ModelSpec spec = two_tables();
  auto plain = PlainRows::blank(spec);
  RECMILL_RETURN_IF_ERROR(plain.status());
  const auto rows_of = [&](int table, int rank, int64_t step) {
    std::vector<int64_t> rows;
    for (int64_t row = rank; row < kRows[table]; row += step)
      if (table == 0 || row != left_out) rows.push_back(row);
    return rows;
  };
  for (int table : {0, 1}) plain->keep(Rows(table, rows_of(table, 0, 1), -1).block);
  return run_ranks(ranks, [&](Communicator& communicator) -> Status {
    const int rank = communicator.rank();
    RowComparison comparison(spec, rank == 0 ? &*plain : nullptr, communicator);
    for (int table : {0, 1}) {
      const auto own = rows_of(table, rank, ranks);
      const auto middle = own.begin() + static_cast<std::ptrdiff_t>(own.size() / 3);
      for (const auto& part : {std::vector(own.begin(), middle), std::vector(middle, own.end())}) {
        if (part.empty()) continue;  // so that ranks have unlike numbers of blocks
        const Rows rows(table, part, table == 1 ? changed : -1);
        RECMILL_RETURN_IF_ERROR(comparison.compare(rows.block));
      }
    }
    return comparison.finish();
  });
}

TEST(RowComparison, finds_the_rows_of_every_rank_the_same) {
  for (const int ranks : {1, 2, 3, 8})
    EXPECT_TRUE(compare(ranks, -1, -1).ok()) << compare(ranks, -1, -1).message();
}

TEST(RowComparison, names_the_first_difference_on_whatever_rank_it_is) {
  for (const int ranks : {1, 3, 8}) {
    EXPECT_THAT(compare(ranks, -1, 13).message(),
                testing::EndsWith("table t1, state sum_of_squares, row 13, element 1: engine "
                                  "1132.5, plain 1131.5"));
  }
}

TEST(RowComparison, names_the_element_of_the_row_where_ranks_own_columns) {
  const ModelSpec spec = two_tables();
  for (const int64_t changed : {int64_t{-1}, int64_t{13}}) {
    auto plain = PlainRows::blank(spec);
    ASSERT_TRUE(plain.ok());
    std::vector<std::vector<int64_t>> rows(2);
    for (int table : {0, 1}) {
      for (int64_t row = 0; row < kRows[table]; ++row) rows[table].push_back(row);
      plain->keep(Rows(table, rows[table], -1).block);
    }
    const Status status = run_ranks(2, [&](Communicator& communicator) -> Status {
      const int rank = communicator.rank();
      RowComparison comparison(spec, rank == 0 ? &*plain : nullptr, communicator);
      const ColumnRange own = rank == 0 ? ColumnRange{0, 1} : ColumnRange{1, kDim - 1};
      for (int table : {0, 1}) {
        const Rows block(table, rows[table], table == 1 ? changed : -1, own);
        RECMILL_RETURN_IF_ERROR(comparison.compare(block.block));
      }
      return comparison.finish();
    });
    const char* const expected =
        "table t1, state sum_of_squares, row 13, element 1: engine 1132.5, plain 1131.5";
    EXPECT_THAT(status.message(), testing::EndsWith(changed < 0 ? "" : expected));
    EXPECT_EQ(status.ok(), changed < 0);
  }
}

TEST(RowComparison, misses_a_row_that_no_rank_owns) {
  EXPECT_THAT(compare(2, 5, -1).message(), testing::EndsWith("ranks own 78 weights of 81"));
}

}  // namespace
}  // namespace recmill::train
