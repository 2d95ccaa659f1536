// SPDX-License-Identifier: Apache-2.0
#include "table/table_snapshots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/random.h"
#include "table/table_shares.h"

namespace recmill::table {
namespace {

constexpr uint64_t kSeed = 41;

// A table of several blocks and chunks, one that is frozen, and a small one with much state.
ModelSpec snapshot_model() {
  ModelSpec model;
  const auto add = [&](const char* name, int64_t rows, int64_t dim, OptimizerKind kind) {
    TableSpec table;
    table.name = name;
    table.rows = rows;
    table.dim = dim;
    table.optimizer.kind = kind;
    model.tables.push_back(table);
  };
  add("long", 150000, 1, OptimizerKind::rowwise_adagrad);
  add("frozen", 10, 3, OptimizerKind::sgd);
  model.tables[1].frozen = true;
  add("wide", 9000, 5, OptimizerKind::adam);
  model.tables.back().optimizer.correction = BiasCorrection::row;
  return model;
}

// All rows of a share: [tables][owned rows][floats].
using Content = std::vector<std::vector<std::vector<float>>>;

std::vector<float> values_of(const RowBlock& block, int64_t i) {
  std::vector<float> values;
  const auto add = [&](std::span<const float> column) {
    const auto width = static_cast<int64_t>(column.size()) / block.count;
    values.insert(values.end(), column.begin() + i * width, column.begin() + (i + 1) * width);
  };
  add(block.weights);
  for (const auto& column : block.state) add(column);
  return values;
}

struct Tables {
  explicit Tables(int rank, int ranks) : tables(make(rank, ranks)), snapshots(tables) {}

  std::vector<EmbeddingTable> make(int rank, int ranks) {
    std::vector<EmbeddingTable> made;
    const auto shares = shares_of(model.tables, rank, ranks);
    for (size_t t = 0; t < shares.size(); ++t)
      made.push_back(*EmbeddingTable::create(model.tables[t], kSeed, shares[t], pool));
    return made;
  }

  // Sets some rows of every table that is not frozen to values of `round`.
  void change(uint64_t round, int64_t step = TableSnapshots::kLast) {
    const Random random(kSeed, recmill::Purpose::test, round);
    std::vector<std::vector<int64_t>> rows(tables.size());
    for (size_t t = 0; t < tables.size(); ++t) {
      if (model.tables[t].frozen) continue;
      for (uint64_t i = 0; i < 500; ++i) {
        const auto drawn = static_cast<int64_t>(random.below(model.tables[t].rows, t, i));
        const int64_t row = tables[t].share().next(drawn);
        if (row < model.tables[t].rows) rows[t].push_back(row);
      }
    }
    const std::vector<std::span<const int64_t>> views(rows.begin(), rows.end());
    const auto change = snapshots.before(views, pool, step);
    for (size_t t = 0; t < tables.size(); ++t) {
      for (const int64_t row : rows[t]) set(tables[t], row, random.uniform(row, round));
    }
  }

  static void set(EmbeddingTable& table, int64_t row, float value) {
    const std::vector<float> values(table.spec().dim, value);
    const std::vector<std::span<const float>> state(
        table.state().size(), std::span(values).first(std::max<int64_t>(1, table.spec().dim)));
    std::vector<std::span<const float>> columns;
    for (size_t c = 0; c < state.size(); ++c) {
      columns.push_back(state[c].first(table.state()[c].width));
    }
    table.write(table.share().slot(row), 1, values, columns);
  }

  Content read(RowSnapshot& snapshot, const std::function<void()>& between) const {
    Content content(tables.size());
    std::vector<int64_t> next(tables.size());
    for (size_t t = 0; t < tables.size(); ++t) next[t] = tables[t].share().next(0);
    const Status status = snapshot.read([&](const RowBlock& block) -> Status {
      for (int64_t i = 0; i < block.count; ++i) {
        EXPECT_EQ(block.row(i), next[block.table]);
        next[block.table] = tables[block.table].share().next(block.row(i) + 1);
        content[block.table].push_back(values_of(block, i));
      }
      between();
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
    for (size_t t = 0; t < tables.size(); ++t) EXPECT_EQ(next[t], model.tables[t].rows);
    return content;
  }
  Content read() {
    return read(*snapshots.take(0), [] {});
  }

  const ModelSpec model = snapshot_model();
  ThreadPool pool{2};
  std::vector<EmbeddingTable> tables;
  TableSnapshots snapshots;
};

}  // namespace

TEST(TableSnapshots, hold_the_rows_as_they_were_whatever_changes_between_blocks) {
  for (const auto& [rank, ranks] : {std::pair{0, 1}, std::pair{1, 3}}) {
    Tables tables(rank, ranks);
    tables.change(1);
    const Content before = tables.read();
    const auto snapshot = tables.snapshots.take(int64_t{1} << 30);
    uint64_t round = 2;
    tables.change(round++);
    const Content read = tables.read(*snapshot, [&] { tables.change(round++); });
    EXPECT_TRUE(read == before) << ranks << " ranks";
    EXPECT_GT(round, 15u) << "nothing changed while it was read";
    EXPECT_FALSE(tables.read() == before) << "nothing changed at all";
  }
}

TEST(TableSnapshots, make_changes_wait_for_the_reader_where_too_much_is_kept) {
  Tables tables(0, 1);
  const Content before = tables.read();
  auto snapshot = tables.snapshots.take(/*kept_bytes=*/1);
  tables.change(1);  // keeps more than a byte
  std::thread changing([&] {
    for (uint64_t round = 2; round < 30; ++round) tables.change(round);
  });
  const Content read = tables.read(*snapshot, [] {});
  changing.join();
  EXPECT_TRUE(read == before);
}

TEST(TableSnapshots, one_that_is_given_up_holds_nobody_and_another_may_be_taken) {
  Tables tables(0, 1);
  auto snapshot = tables.snapshots.take(1);
  tables.change(1);
  std::thread changing([&] { tables.change(2); });
  const Status status = snapshot->read([](const RowBlock&) { return Status::Failed("disk full"); });
  EXPECT_EQ(status.message(), "disk full");
  snapshot.reset();
  changing.join();
  const Content before = tables.read();
  const auto second = tables.snapshots.take(int64_t{1} << 30);
  tables.change(3);
  EXPECT_TRUE(tables.read(*second, [] {}) == before);
}

TEST(TableSnapshots, that_are_read_at_the_same_time_each_hold_the_rows_as_they_were) {
  Tables tables(0, 1);
  constexpr int64_t kBytes = int64_t{1} << 30;
  const Content first_rows = tables.read();
  const auto first = tables.snapshots.take(kBytes);
  tables.change(1);
  const Content second_rows = tables.read();
  const auto second = tables.snapshots.take(kBytes);
  uint64_t round = 2;
  tables.change(round++);
  const Content second_read = tables.read(*second, [&] { tables.change(round++); });
  EXPECT_TRUE(second_read == second_rows);
  EXPECT_TRUE(tables.read(*first, [&] { tables.change(round++); }) == first_rows);
  EXPECT_FALSE(tables.snapshots.is_being_read());
}

TEST(TableSnapshots, of_a_step_show_changes_up_to_it_and_none_of_later_ones) {
  Tables tables(0, 1);
  const auto snapshot = tables.snapshots.take(int64_t{1} << 30, /*step=*/3);
  tables.change(1, 2);
  tables.change(2, 3);
  const Content rows = tables.read();
  tables.change(3, 4);
  uint64_t round = 5;
  const Content read = tables.read(*snapshot, [&] {
    tables.change(round, static_cast<int64_t>(round));
    ++round;
  });
  EXPECT_TRUE(read == rows);
}

}  // namespace recmill::table
